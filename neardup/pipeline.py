"""The only place where the stages are wired together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

import numpy as np

from neardup.cluster import cluster, keep_order
from neardup.corpus.sources import Corpus, Files, Paths, Texts
from neardup.corpus.walk import FileKey
from neardup.errors import UsageError
from neardup.index.plan import choose
from neardup.index.search import exact, window
from neardup.progress import Progress
from neardup.result import ScanResult
from neardup.settings import DEFAULT_ROTATIONS, DEFAULT_WINDOW, Settings
from neardup.sketch import BATCH, fingerprints, recipe
from neardup.tables import ARGUMENT, Fingerprints, Ids, IntArray, Pairs, Tally, UInt64Array
from neardup.verify import confirm


def scan(
    paths: Paths,
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    leave_out: frozenset[FileKey] = frozenset(),
    **options: object,
) -> ScanResult:
    """Find the near-duplicates among the documents in files and directories.

    Parameters
    ----------
    paths : path or iterable of paths
        Directories are read recursively; files that end in ``.jsonl`` or ``.ndjson`` hold one
        document on each line.
    settings : Settings, optional
    progress : Progress, optional
        Told about each phase.
    leave_out : files not to read
    **options
        Fields of ``Settings`` in place of a whole one: ``scan("docs", threshold=6)``.

    Returns
    -------
    ScanResult
        Pairs are confirmed by exact Jaccard similarity of word 3-shingles unless
        ``min_similarity`` is 0. ``complete`` is False if one of several paths does not exist.

    Raises
    ------
    UsageError
        A setting is out of range, no path exists, or a corpus file has no text field.
    """
    settings = _settings(settings, options)
    progress = progress or Progress()
    with progress.phase("list"):
        corpus = Files(paths, settings.text_field, settings.id_field, settings.hidden, leave_out)
    return _run(corpus, settings, progress)


def find(
    texts: Iterable[str],
    ids: Iterable[object] | None = None,
    settings: Settings | None = None,
    *,
    progress: Progress | None = None,
    **options: object,
) -> ScanResult:
    """Find the near-duplicates among texts in memory.

    Parameters
    ----------
    texts : iterable of n str
    ids : iterable of n unique ids, optional
        By default the numbers from 0.
    settings, progress, **options
        As for ``scan``.

    Raises
    ------
    UsageError
        A setting is out of range, or the ids do not fit the texts.
    """
    settings = _settings(settings, options)
    return _run(Texts(texts, ids), settings, progress or Progress())


def fingerprint_files(
    paths: Paths,
    sketch: str = "simhash",
    text_field: str = "text",
    id_field: str = "id",
    hidden: bool = False,
) -> tuple[Ids, Fingerprints, Tally]:
    """Return ids and fingerprints of the documents in files and directories, and what happened to
    the others. Raises as ``scan``."""
    corpus = Files(paths, text_field, id_field, hidden)
    prints, _ = _read(corpus, Settings(sketch=sketch), Progress())
    ids = corpus.ids()
    _name_unusable(ids, prints, corpus.tally)
    return ids, prints, corpus.tally


def _name_unusable(ids: Ids, prints: Fingerprints, tally: Tally) -> None:
    for row in np.flatnonzero(prints.features == 0).tolist():
        tally.skip(ids[row], "fingerprint", "no usable text")


def _settings(settings: Settings | None, options: dict[str, object]) -> Settings:
    if settings is not None and options:
        raise UsageError("give settings or single options, not both")
    try:
        return settings or Settings(**options)  # type: ignore[arg-type]
    except TypeError as error:
        raise UsageError(str(error).replace("Settings.__init__() got an ", "")) from None


def _run(corpus: Corpus, settings: Settings, progress: Progress) -> ScanResult:
    """Run all stages.

    1. read and fingerprint every document, in batches; keep bits, number of features and a digest
    2. group identical texts: one of each group, the original, stands for all
    3. search candidate pairs among the originals' fingerprints
    4. verify candidates on the texts, read again
    5. cluster the confirmed pairs and choose what to keep
    """
    recipe(settings.sketch)
    prints, digests = _read(corpus, settings, progress)
    ids, tally = corpus.ids(), corpus.tally
    _name_unusable(ids, prints, tally)
    original = _originals(digests, prints, ids)
    rows = np.flatnonzero((original == np.arange(len(ids))) & (prints.features > 0))
    with progress.phase("search"):
        candidates = _search(prints.bits[rows], settings)
    candidates = Pairs.candidates(
        rows[candidates.left], rows[candidates.right], candidates.distance
    )
    near = candidates
    if settings.min_similarity > 0:
        unchanged = _Unchanged(corpus, digests, ids)
        with progress.phase("verify", len(candidates), "pairs") as advance:
            near = confirm(
                candidates, prints.features, unchanged.read_again, settings.min_similarity, advance
            )
    with progress.phase("cluster"):
        clusters = cluster(near.left, near.right, original, ids)
        sizes = np.bincount(original, minlength=len(ids))
        total = int((sizes[near.left] * sizes[near.right]).sum() + (sizes * (sizes - 1) // 2).sum())
        pairs = _all_pairs(near, original) if settings.all_pairs else _with_copies(near, original)
    return ScanResult(
        ids=ids,
        fingerprints=prints,
        pairs=pairs,
        original=original,
        clusters=clusters,
        total_pairs=total,
        candidates=len(candidates),
        confirmed=len(near),
        skipped=tally.skipped,
        notes=tally.notes,
        bytes_read=tally.bytes_read,
        seconds=progress.seconds,
        complete=not any(skip.stage == ARGUMENT for skip in tally.skipped),
        settings=settings,
    )


def _read(
    corpus: Corpus, settings: Settings, progress: Progress
) -> tuple[Fingerprints, UInt64Array]:
    """Return fingerprints and 128-bit digests, uint64 (n, 2), of all documents."""
    bits, features = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    digests = bytearray()
    with progress.show("read", corpus.total, "files") as advance:
        documents = corpus.documents(advance)
        while True:
            with progress.timed("read"):
                texts = []
                size = 0
                for document in documents:
                    texts.append(document.text)
                    digests += _digest(document.text)
                    size += len(document.text) + 1
                    if size > BATCH:
                        break
            if not texts:
                break
            with progress.timed("fingerprint"):
                made = fingerprints(texts, settings.sketch)
            bits.append(made.bits)
            features.append(made.features)
    prints = Fingerprints(
        np.concatenate(bits), np.concatenate(features), recipe(settings.sketch).name
    )
    return prints, np.frombuffer(bytes(digests), np.uint64).reshape(-1, 2)


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _originals(digests: UInt64Array, prints: Fingerprints, ids: Ids) -> IntArray:
    """Return for each document the one whose text it repeats to the letter, int64 (n,): of a group
    of identical texts, the one to keep. Documents without usable text repeat nothing.

    Only identical texts are grouped, not equal fingerprints: documents that merely share a
    fingerprint are candidates like any others, and whoever acts on them must see each pair.
    """
    original = np.arange(len(digests))
    usable = np.flatnonzero(prints.features)
    order = usable[np.lexsort((digests[usable, 1], digests[usable, 0]))]
    same = (digests[order[1:]] == digests[order[:-1]]).all(axis=1)
    for group in np.split(order, np.flatnonzero(~same) + 1) if same.any() else ():
        if len(group) > 1:
            original[group] = min(group.tolist(), key=lambda row: keep_order(ids[row]))
    return original


def _search(bits: UInt64Array, settings: Settings) -> Pairs:
    if settings.exact:
        return exact(bits, choose(len(bits), settings.threshold))
    return window(
        bits,
        settings.threshold,
        settings.rotations or DEFAULT_ROTATIONS,
        settings.window or DEFAULT_WINDOW,
    )


class _Unchanged:
    """Reads documents again, but only those that still hold what was fingerprinted."""

    def __init__(self, corpus: Corpus, digests: UInt64Array, ids: Ids) -> None:
        self._corpus, self._digests, self._ids = corpus, digests, ids

    def read_again(self, rows: IntArray) -> Iterator[tuple[int, str]]:
        for row, text in self._corpus.read_again(rows):
            if _digest(text) == self._digests[row].tobytes():
                yield row, text
            else:
                self._corpus.tally.skip(self._ids[row], "verify", "changed while scanning")


def _copy_pairs(left: IntArray, right: IntArray) -> Pairs:
    count = len(left)
    return Pairs(
        np.minimum(left, right),
        np.maximum(left, right),
        np.zeros(count, np.uint8),
        np.ones(count, np.float32),
        np.ones(count, np.bool_),
    )


def _with_copies(near: Pairs, original: IntArray) -> Pairs:
    """Add a pair of each copy with its original: a star, not n² pairs."""
    copies = np.flatnonzero(original != np.arange(len(original)))
    return Pairs.concatenate([near, _copy_pairs(original[copies], copies)]).sorted()


def _all_pairs(near: Pairs, original: IntArray) -> Pairs:
    """Add every pair that follows from identical texts."""
    members = np.argsort(original, kind="stable")
    sizes = np.bincount(original, minlength=len(original))
    starts = np.cumsum(sizes) - sizes
    counts = sizes[near.left] * sizes[near.right]
    nth = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    width = np.repeat(sizes[near.right], counts)
    left = members[np.repeat(starts[near.left], counts) + nth // width]
    right = members[np.repeat(starts[near.right], counts) + nth % width]
    spread = near.take(np.repeat(np.arange(len(near)), counts))
    parts = [
        Pairs(
            np.minimum(left, right),
            np.maximum(left, right),
            spread.distance,
            spread.similarity,
            spread.exact,
        )
    ]
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        one, other = np.triu_indices(size, 1)
        parts.append(_copy_pairs(members[start + one], members[start + other]))
    return Pairs.concatenate(parts).sorted()
