"""Fingerprints in, candidate pairs out."""

from neardup.index.search import pairs

__all__ = ["pairs"]
