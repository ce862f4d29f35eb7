"""Directories to files: each file once, in the sorted order of ids."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from neardup.errors import UsageError
from neardup.tables import Skipped, Tally

#: What the summary calls things that are left out by default.
HIDDEN = "hidden files and folders left out (--hidden reads them)"
LINKS = "symbolic links not followed"

FileKey = tuple[int, int]


@dataclass(frozen=True, slots=True)
class File:
    """A file to read, of so many bytes when it was found. ``id`` is its path relative to the
    scanned root, with ``/``; when there are several roots it begins with the root as given."""

    path: str
    id: str
    size: int


def file_key(status: os.stat_result) -> FileKey:
    """What two names of one file have in common."""
    return status.st_dev, status.st_ino


def walk(
    paths: Sequence[str],
    tally: Tally,
    hidden: bool = False,
    leave_out: frozenset[FileKey] = frozenset(),
) -> Iterator[File]:
    """Yield every regular file under the paths, in document order: root by root, in each the sorted
    order of ids (by code point).

    Symbolic links are not followed, except where a path given is one. What is left out or cannot
    be read is entered into the tally. A file reached twice counts once: silently when by the same
    path, named when it is a hard link.

    Parameters
    ----------
    paths : files and directories
    tally : filled
    hidden : also read what begins with a dot
    leave_out : files not to read, such as the outputs of this run

    Raises
    ------
    UsageError
        None of the paths exists.
    """
    roots = _roots(paths, tally)
    # A file can only come twice by a second name, or by a root that lies in another.
    nested = _nested([root for root, _ in roots])
    seen: dict[FileKey, File] = {}
    for root, status in roots:
        prefix = "" if len(roots) + len(tally.missing) == 1 else as_id(os.path.normpath(root))
        if stat.S_ISDIR(status.st_mode):
            found = _walk_directory(root, prefix, tally, hidden)
        else:
            found = iter(
                [(File(root, prefix or as_id(os.path.basename(root)), status.st_size), status)]
            )
        for file, status in found:
            key = file_key(status)
            if key in leave_out:
                tally.note("outputs of this run left out")
                continue
            if not stat.S_ISREG(status.st_mode):
                tally.skip(file.id, "walk", "not a regular file")
                continue
            if nested or status.st_nlink > 1:
                first = seen.setdefault(key, file)
                if first is not file:
                    if os.path.realpath(first.path) != os.path.realpath(file.path):
                        tally.skip(file.id, "walk", f"hard link: the same file as {first.id}")
                    continue
            yield file


def _roots(paths: Sequence[str], tally: Tally) -> list[tuple[str, os.stat_result]]:
    """Return the paths that exist, each once."""
    roots: dict[FileKey, tuple[str, os.stat_result]] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            tally.missing.append(Skipped(as_id(path), "walk", reason))
        else:
            first, _ = roots.setdefault(file_key(status), (path, status))
            if stat.S_ISREG(status.st_mode) and os.path.realpath(first) != os.path.realpath(path):
                tally.skip(as_id(path), "walk", f"hard link: the same file as {as_id(first)}")
    if not roots:
        if not paths:
            raise UsageError("no documents given; name a file or a directory")
        raise UsageError(*(f"{skip.id}: {skip.reason}" for skip in tally.missing))
    return list(roots.values())


def _nested(roots: list[str]) -> bool:
    places = sorted(os.path.join(os.path.realpath(root), "") for root in roots)
    return any(after.startswith(before) for before, after in pairwise(places))


def _walk_directory(
    root: str, prefix: str, tally: Tally, hidden: bool
) -> Iterator[tuple[File, os.stat_result]]:
    """Yield what lies below a directory, except directories, links and hidden things."""
    stack = [iter([(prefix, root)])]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        id, path = entry
        try:
            status = os.lstat(path) if path != root else os.stat(path)
            if stat.S_ISLNK(status.st_mode):
                tally.note(LINKS)
            elif stat.S_ISDIR(status.st_mode):
                stack.append(iter(_entries(path, id, tally, hidden)))
            else:
                yield File(path, id, status.st_size), status
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            if path == root:
                tally.missing.append(Skipped(as_id(path), "walk", reason))
            else:
                tally.skip(id, "walk", reason)


def _entries(directory: str, id: str, tally: Tally, hidden: bool) -> list[tuple[str, str]]:
    """Return id and path of what lies in one directory, in the order that makes whole ids sorted:
    a directory sorts as if its name ended in ``/``."""
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(".") and not hidden:
                tally.note(HIDDEN)
                continue
            child = f"{id}/{as_id(entry.name)}" if id else as_id(entry.name)
            is_directory = entry.is_dir(follow_symlinks=False)
            found.append((child + "/" if is_directory else child, child, entry.path))
    found.sort()
    return [(child, path) for _, child, path in found]


def as_id(path: str) -> str:
    """Return a path as ids have it: with ``/``, and its bytes read as UTF-8 whatever the locale;
    those that are not are surrogate escapes."""
    id = os.fsencode(path).decode("utf-8", "surrogateescape")
    return id if os.sep == "/" else id.replace(os.sep, "/")


def as_path(id: str) -> str:
    """Undo ``as_id``: return a path that this system can open."""
    return os.fsdecode(id.encode("utf-8", "surrogateescape"))
