"""The only place where the stages are wired together."""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from hashlib import blake2b

import numpy as np

from neardup import fast
from neardup.cluster import cluster, keep_order
from neardup.corpus.sources import Corpus, Files, Origins, Part, Paths, Texts
from neardup.corpus.walk import FileKey
from neardup.errors import UnreadableError, UsageError
from neardup.groups import Groups
from neardup.index.search import exact, plan_for, window
from neardup.progress import Progress
from neardup.result import ScanResult
from neardup.settings import DEFAULT_ROTATIONS, DEFAULT_WINDOW, Settings
from neardup.sketch import batches, fingerprint_batch, recipe
from neardup.sketch.tokens import utf8
from neardup.tables import Fingerprints, Ids, Int32Array, IntArray, Pairs, Tally, UInt64Array
from neardup.verify import confirm
from neardup.workers import forks, in_order, keep_freed_memory

# Of the bytes of a text, 64 bits.
Digest = Callable[[bytes], int]


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
        ``min_similarity`` is 0. ``missing`` names paths that could not be read at all.

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
    ids : iterable of n ids, optional
        Unique as strings, which is what the result has. By default the numbers from 0.
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
    paths: Paths, settings: Settings | None = None
) -> tuple[Ids, Fingerprints, Tally]:
    """Return ids and fingerprints of the documents in files and directories, and what happened to
    the others. Raises as ``scan``."""
    settings = settings or Settings()
    corpus = Files(paths, settings.text_field, settings.id_field, settings.hidden)
    read = _read(corpus, settings, Progress())
    _name_unusable(corpus.ids(), read.prints, corpus.tally)
    return corpus.ids(), read.prints, corpus.tally


def _settings(settings: Settings | None, options: dict[str, object]) -> Settings:
    if settings is None:
        known = [field.name for field in fields(Settings)]
        for name in options:
            if name not in known:
                raise UsageError(f"no setting {name!r}; there are: {', '.join(known)}")
        return Settings(**options)  # type: ignore[arg-type]
    if not isinstance(settings, Settings):
        raise UsageError(f"settings are a Settings, not a {type(settings).__name__}")
    if options:
        raise UsageError("give settings or single options, not both")
    return settings


def _run(corpus: Corpus, settings: Settings, progress: Progress) -> ScanResult:
    """Run all stages.

    1. read and fingerprint every document, in batches; keep bits, number of features and a digest
    2. group identical texts: one of each group, the original, stands for all
    3. search candidate pairs among the originals' fingerprints
    4. verify candidates on the texts, read again
    5. cluster the confirmed pairs and choose what to keep
    """
    recipe(settings.sketch)
    keep_freed_memory()
    read = _read(corpus, settings, progress)
    ids, tally, prints = corpus.ids(), corpus.tally, read.prints
    _name_unusable(ids, prints, tally)
    while True:
        with progress.timed("search"):
            original = _originals(read.digests, prints, ids)
            rows = np.flatnonzero((original == np.arange(len(ids))) & (prints.features > 0))
        near = _search(prints.bits[rows], settings, progress)
        if len(rows) < len(ids):
            near = Pairs.candidates(rows[near.left], rows[near.right], near.distance)
        candidates = len(near)
        if settings.min_similarity == 0:
            break
        again = partial(_read_again, corpus, read.digests, read.digest)
        verified = confirm(
            near, read.sizes, again, settings.min_similarity, progress, settings.workers
        )
        near = verified.pairs
        if not verified.lost:
            break
        # What vanished or changed meanwhile takes no part; its copies need another original.
        features = prints.features.copy()
        for row, reason in sorted(verified.lost.items()):
            tally.skip(ids[row], "verify", reason)
            features[row] = 0
        prints = replace(prints, features=features)
    with progress.phase("cluster"):
        clusters = cluster(near.left, near.right, original, ids)
        groups = Groups.of(original)
        sizes = groups.sizes
        total = int((sizes[near.left] * sizes[near.right]).sum() + (sizes * (sizes - 1) // 2).sum())
        pairs = _all_pairs(near, groups) if settings.all_pairs else _with_copies(near, original)
    return ScanResult(
        ids=ids,
        fingerprints=prints,
        pairs=pairs,
        original=original,
        clusters=clusters,
        total_pairs=total,
        candidates=candidates,
        confirmed=len(near),
        skipped=tally.skipped,
        missing=tally.missing,
        notes=tally.notes,
        bytes_read=tally.bytes_read,
        seconds=progress.seconds,
        settings=settings,
    )


@dataclass(frozen=True)
class _Read:
    """What is kept of all documents once read: their fingerprints, digests of their texts, int64
    (n,), how these are made, and sizes in bytes, int64 (n,)."""

    prints: Fingerprints
    digests: IntArray
    digest: Digest
    sizes: IntArray


@dataclass(frozen=True)
class _ReadPart:
    """The same of one part of the corpus, where its documents come from, and the seconds spent."""

    bits: UInt64Array
    features: Int32Array
    digests: array[int]
    sizes: array[int]
    origins: Origins
    seconds: dict[str, float]


def _read(corpus: Corpus, settings: Settings, progress: Progress) -> _Read:
    """Read and fingerprint the parts of the corpus, shared among the workers."""
    fast.expect(corpus.total)
    with progress.phase("load"):
        # Before the workers are made; the first time on a machine they are compiled.
        for folder in ("sketch", "index", "verify"):
            fast.kernels(folder)
    digests, sizes = array("q"), array("q")
    bits, features = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    parts = corpus.parts()
    digest = _digest(settings.workers)
    work = partial(_read_part, corpus, settings.sketch, digest)
    with progress.show("read", corpus.total, "B") as advance, progress.shares() as spend:
        for part, done in zip(parts, in_order(work, parts, settings.workers), strict=True):
            corpus.enter(part, done.origins)
            bits.append(done.bits)
            features.append(done.features)
            digests += done.digests
            sizes += done.sizes
            spend(done.seconds)
            advance(part.size)
    return _Read(
        Fingerprints(np.concatenate(bits), np.concatenate(features), recipe(settings.sketch).name),
        np.frombuffer(digests, np.int64),
        digest,
        np.frombuffer(sizes, np.int64),
    )


def _read_part(corpus: Corpus, sketch: str, digest: Digest, part: Part) -> _ReadPart:
    """Read and fingerprint one part; done by the workers."""
    made = recipe(sketch)
    origins = Origins()
    digests, sizes = array("q"), array("q")
    bits, features = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]

    def texts() -> Iterator[bytes]:
        for text in corpus.read(part, origins):
            data, exact = _encoded(text)
            digests.append(digest(exact))
            sizes.append(len(data))
            yield data

    clock = Progress()
    stream = batches(texts())
    while True:
        with clock.timed("decode"):
            batch = next(stream, None)
        if batch is None:
            break
        with clock.timed("fingerprint"):
            some_bits, some_features = fingerprint_batch(batch, made)
        bits.append(some_bits)
        features.append(some_features)
    seconds = {
        "read": origins.seconds,
        "decode": clock.seconds["decode"] - origins.seconds,
        "fingerprint": clock.seconds.get("fingerprint", 0.0),
    }
    return _ReadPart(
        np.concatenate(bits), np.concatenate(features), digests, sizes, origins, seconds
    )


def _encoded(text: str) -> tuple[bytes, bytes]:
    """Return a text in UTF-8, as the sketches take it, and just as it is."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates, which may be bytes that could not be decoded
        return utf8(text), text.encode("utf-8", "surrogatepass")
    return data, data


def _digest(workers: int) -> Digest:
    """Return what makes 64 bits of a text under a key that is drawn for this run, so that nobody
    can prepare texts with the same digest.

    Python's own hash of bytes is that, SipHash (Aumasson, Bernstein, INDOCRYPT 2012), at four times
    the speed of BLAKE2b; but workers that are not forked have other keys, PYTHONHASHSEED makes the
    key known, and Python can be built with another hash, or one of 32 bits.
    """
    drawn = os.environ.get("PYTHONHASHSEED", "random") == "random"
    info = sys.hash_info
    strong = info.algorithm.startswith("siphash") and info.width == 64 and info.cutoff == 0
    if drawn and strong and (workers == 1 or forks()):
        return hash
    return partial(_blake2b, os.urandom(16))


def _blake2b(key: bytes, data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8, key=key).digest(), "little", signed=True)


def _name_unusable(ids: Ids, prints: Fingerprints, tally: Tally) -> None:
    for row in np.flatnonzero(prints.features == 0).tolist():
        tally.skip(ids[row], "fingerprint", "no usable text")


def _originals(digests: IntArray, prints: Fingerprints, ids: Ids) -> IntArray:
    """Return for each document the one whose text it repeats to the letter, int64 (n,): of a group
    of identical texts, the one to keep. Documents without usable text repeat nothing.

    Identical texts have the same digest and the same fingerprint. The chance that two other ones
    have the same digest is one in 10¹⁹, whatever they are.

    Only identical texts are grouped, not equal fingerprints: documents that merely share a
    fingerprint are candidates like any others, and whoever acts on them must see each pair. The
    price is that a family of m texts with nearly equal fingerprints has m² / 2 candidates.
    """
    original = np.arange(len(digests))
    usable = np.flatnonzero(prints.features)
    order = usable[np.lexsort((prints.bits[usable], digests[usable]))]
    same = (digests[order[1:]] == digests[order[:-1]]) & (
        prints.bits[order[1:]] == prints.bits[order[:-1]]
    )
    # A group is a run of places that are the same as the next one, and the place behind it.
    edges = np.flatnonzero(np.diff(same.astype(np.int8), prepend=0, append=0))
    for start, end in edges.reshape(-1, 2).tolist():
        group = order[start : end + 1]
        original[group] = min(group.tolist(), key=lambda row: keep_order(ids[row]))
    return original


def _search(bits: UInt64Array, settings: Settings, progress: Progress) -> Pairs:
    if settings.exact:
        plan = plan_for(len(bits), settings.max_distance)
        with progress.phase("search", len(plan.masks), "tables") as advance:
            return exact(bits, plan, advance, settings.workers)
    rotations = settings.rotations or DEFAULT_ROTATIONS
    with progress.phase("search", rotations, "rotations") as advance:
        width = settings.window or DEFAULT_WINDOW
        return window(bits, settings.max_distance, rotations, width, advance)


def _read_again(
    corpus: Corpus, digests: IntArray, digest: Digest, rows: IntArray
) -> Iterator[tuple[int, bytes | UnreadableError]]:
    """Read documents again; those that no longer hold what was fingerprinted cannot be."""
    for row, text in corpus.read_again(rows):
        if isinstance(text, UnreadableError):
            yield row, text
            continue
        data, exact = _encoded(text)
        same = digest(exact) == digests[row]
        yield row, data if same else UnreadableError("changed while scanning")


def _copies(left: IntArray, right: IntArray) -> Pairs:
    """Return pairs of identical texts."""
    count = len(left)
    return Pairs(
        np.minimum(left, right),
        np.maximum(left, right),
        np.zeros(count, np.uint8),
        np.ones(count),
        np.ones(count, np.bool_),
    )


def _with_copies(near: Pairs, original: IntArray) -> Pairs:
    """Add a pair of each copy with its original: a star, not n² pairs."""
    copies = np.flatnonzero(original != np.arange(len(original)))
    if not len(copies):
        return near
    return Pairs.concatenate([near, _copies(original[copies], copies)]).sorted()


def _all_pairs(near: Pairs, groups: Groups) -> Pairs:
    """Add every pair that follows from identical texts."""
    left, right, source = groups.between(near.left, near.right)
    spread = Pairs(
        np.minimum(left, right),
        np.maximum(left, right),
        near.distance[source],
        near.similarity[source],
        near.identical[source],
    )
    within = [_copies(one, other) for one, other in groups.within()]
    return Pairs.concatenate([spread, *within]).sorted()
