"""python -m neardup, and the console script."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress


def main() -> None:
    """Run the command line; an interrupt while it is still being imported is a quiet end, too."""
    # What is made lives to the end or is in no cycle: searching all of it for garbage again and
    # again takes a fifth of a second with the compiled kernels loaded.
    gc.set_threshold(500_000)
    # Nothing here is linear algebra; numpy would make threads for it on every core.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from neardup.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as end:
        watched = sys.gettrace() or sys.getprofile()  # which tell what they saw at the end
        if end.code in (None, 0) and not watched:
            _leave()
        raise


def _leave() -> None:
    """End at once, all work being done: to take everything apart first would need as long again
    as the imports."""
    with suppress(Exception):  # the ordinary end has words for it
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
