"""What can be set, checked once."""

from __future__ import annotations

import operator
from dataclasses import dataclass

from neardup.errors import UsageError

#: A threshold above this finds mostly chance: one pair in 26,000 random fingerprints is at 16 bits
#: or less, one in 3,200 at 18 or less.
LARGEST_SENSIBLE_THRESHOLD = 16

#: The threshold that goes with each sketch, chosen from the table in the README: F1 after
#: verification is 0.98 or more on every labelled set with each of 32 hash seeds. (classic keeps the
#: 10 it always had; on English 8 would do, and on Chinese nothing does.)
RECOMMENDED = {"simhash": 12, "minhash": 10, "classic": 10}

DEFAULT_ROTATIONS = 16
DEFAULT_WINDOW = 8


@dataclass(frozen=True)
class Settings:
    """The settings of a scan.

    Parameters
    ----------
    threshold : int or None
        Largest Hamming distance of a candidate pair, in bits, 0 to 64; None is what is recommended
        for the sketch (``max_distance`` says which).
    min_similarity : float
        Smallest Jaccard similarity of a confirmed pair, 0 to 1; 0 switches verification off.
    sketch : str
        The recipe of the fingerprints: ``simhash``, ``minhash`` or ``classic``.
    rotations, window : int or None
        When either is given the search is approximate: it compares each fingerprint with its next
        ``window`` neighbours in each of ``rotations`` sorted rotations. None for both is exact.
    all_pairs : bool
        Also list the pairs that follow from identical texts. Without it the copies of a text are
        listed once each, as pairs with one of them.
    text_field, id_field : str
        Where corpus files keep text and id.
    hidden : bool
        Read hidden files and folders, too.
    workers : int
        Processes that share the work. Results do not depend on it.

    Raises
    ------
    UsageError
        A value is out of its range.
    """

    threshold: int | None = None
    min_similarity: float = 0.8
    sketch: str = "simhash"
    rotations: int | None = None
    window: int | None = None
    all_pairs: bool = False
    text_field: str = "text"
    id_field: str = "id"
    hidden: bool = False
    workers: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.sketch, str) or self.sketch not in RECOMMENDED:
            raise UsageError(f"no sketch {self.sketch!r}; there are: {', '.join(RECOMMENDED)}")
        if self.threshold is not None and (
            not _is_whole(self.threshold) or not 0 <= self.threshold <= 64
        ):
            raise _bad_threshold(self.threshold)
        if not _is_real(self.min_similarity) or not 0 <= self.min_similarity <= 1:
            raise UsageError(f"min_similarity goes from 0 to 1, not {self.min_similarity!r}")
        if self.rotations is not None and (
            not _is_whole(self.rotations) or not 1 <= self.rotations <= 64
        ):
            raise UsageError(f"rotations go from 1 to 64, not {self.rotations!r}")
        if self.window is not None and (not _is_whole(self.window) or self.window < 1):
            raise UsageError(f"the window is at least 1, not {self.window!r}")
        if not _is_whole(self.workers) or self.workers < 1:
            raise UsageError(f"there is at least 1 worker, not {self.workers!r}")

    @property
    def max_distance(self) -> int:
        """The Hamming distance up to which pairs are candidates."""
        return RECOMMENDED[self.sketch] if self.threshold is None else self.threshold

    @property
    def exact(self) -> bool:
        """Whether the search finds every pair within the threshold."""
        return self.rotations is None and self.window is None


def _is_whole(value: object) -> bool:
    try:
        operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return hasattr(value, "__float__")


def parse_threshold(value: str) -> int:
    """Return a threshold as given on the command line; UsageError if it is none."""
    try:
        return int(value)
    except ValueError:
        raise _bad_threshold(value) from None


def _bad_threshold(value: object) -> UsageError:
    message = f"the threshold is a whole number of bits from 0 to 64, not {value!r}"
    try:
        share = float(str(value).rstrip("%"))
    except ValueError:
        return UsageError(message)
    if "%" in str(value) or 0 < share < 1:
        message += "; for a similarity there is --min-similarity"
    return UsageError(message)
