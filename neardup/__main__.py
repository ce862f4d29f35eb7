"""python -m neardup, and the console script."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line; an interrupt while it is still being imported is a quiet end, too."""
    # What is made lives to the end or is in no cycle: searching all of it for garbage again and
    # again, and once more at the end, takes a quarter of a second with the compiled kernels loaded.
    gc.set_threshold(500_000)
    try:
        from neardup.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
