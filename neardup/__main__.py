"""python -m neardup, and the console script."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an interrupt while it is still being imported is a quiet end, too."""
    try:
        from neardup.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
