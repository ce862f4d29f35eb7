"""Print labels for seed packets from a small table.

Input is a text file with one packet per line, three fields separated by
semicolons: the plant, the month for sowing and the depth in millimetres.
Lines that start with a hash sign are comments.

    radish; March; 10
    broad bean; February; 50
"""

import sys

WIDTH = 28


def parse(lines):
    """Yield (plant, month, depth) for each packet, complaining about bad lines."""
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split(";")]
        if len(fields) != 3 or not fields[2].isdigit():
            print(f"line {number} skipped: {line!r}", file=sys.stderr)
            continue
        yield fields[0], fields[1], int(fields[2])


def label(plant, month, depth):
    """Return one label as a box of plain characters."""
    edge = "+" + "-" * WIDTH + "+"
    rows = [plant.upper(), f"sow in {month}", f"{depth} mm deep"]
    body = ["|" + row[:WIDTH].center(WIDTH) + "|" for row in rows]
    return "\n".join([edge, *body, edge])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: seed_labels.py TABLE")
    with open(sys.argv[1], encoding="utf-8") as table:
        for packet in parse(table):
            print(label(*packet))
            print()


if __name__ == "__main__":
    main()
