"""Groups of documents joined by pairs, and which of each group to keep."""

from __future__ import annotations

import numpy as np

from neardup.tables import Clusters, Ids, IntArray


def components(n: int, left: IntArray, right: IntArray) -> IntArray:
    """Return for each of n nodes the smallest node it is connected with by the edges given.

    Hooking and pointer jumping (Shiloach, Vishkin, "An O(log n) parallel connectivity algorithm",
    1982): every edge hangs the larger of its two labels below the smaller one, then all paths are
    shortened. No recursion, and a chain of any length needs few rounds.
    """
    label = np.arange(n)
    while len(left):
        np.minimum.at(label, np.maximum(left, right), np.minimum(left, right))
        while True:
            shorter = label[label]
            if np.array_equal(shorter, label):
                break
            label = shorter
        # What is still apart is joined by edges between labels in place of nodes.
        left, right = label[left], label[right]
        apart = left != right
        left, right = left[apart], right[apart]
    return label


def keep_order(id: str) -> tuple[int, str]:
    """The rule by which one copy is preferred: the shortest id, and of these the first in
    character order.

    It does not depend on the order of the input, puts record 9 before record 10, and prefers
    ``report.txt`` to ``report (copy).txt`` and ``old/report.txt``.
    """
    return len(id), id


def cluster(left: IntArray, right: IntArray, original: IntArray, ids: Ids) -> Clusters:
    """Return the clusters of confirmed pairs.

    Parameters
    ----------
    left, right : int64 (m,)
        The confirmed pairs, between originals only.
    original : int64 (n,)
        For each document the one whose text it repeats to the letter, by ``keep_order``; itself
        if there is none. Copies are in the cluster of their original.
    ids : Ids of n documents

    Returns
    -------
    Clusters
        A chain can join unlike ends, so a cluster may keep several documents: in ``keep_order``,
        each document is kept unless it makes a confirmed pair with one that is already kept.
        Nothing is dropped on the strength of a chain.
    """
    n = len(original)
    root = components(n, left, right)[original]
    members = np.flatnonzero(np.bincount(root, minlength=n)[root] > 1)
    _, first, label_of = np.unique(root[members], return_index=True, return_inverse=True)
    # Number the clusters by their first document.
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(1, len(first) + 1)
    label = np.zeros(n, np.int64)
    label[members] = rank[label_of]

    # Every document's partners in a row: pairs as single numbers are sorted the quickest.
    both = np.sort(np.concatenate((left * n + right, right * n + left)))
    bounds = np.searchsorted(both, n * np.arange(n + 1)).tolist()
    partners = both % n

    kept_by = original.copy()
    representative = np.full(len(first), -1, np.int64)
    dropped = np.zeros(n, np.bool_)
    originals = members[original[members] == members]
    names = ids.take(originals)
    preferred = sorted(range(len(names)), key=lambda place: keep_order(names[place]))
    for row in originals[preferred].tolist():
        if representative[label[row] - 1] < 0:
            representative[label[row] - 1] = row
        if not dropped[row]:
            # Partners earlier in the order are dropped already, or this one would be.
            others = partners[bounds[row] : bounds[row + 1]]
            others = others[~dropped[others]]
            dropped[others] = True
            kept_by[others] = row
    # A copy shares the fate of its original.
    return Clusters(label, representative, kept_by[kept_by])
