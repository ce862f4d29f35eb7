"""Scan a directory from Python: pairs, clusters, and what to keep."""

from pathlib import Path

import neardup

result = neardup.scan(Path(__file__).parent / "docs", threshold=10, min_similarity=0.8)

print(f"{len(result.ids)} documents, {len(result)} pairs, {len(result.clusters)} clusters")
for pair in result:
    print(f"{pair.distance:2} bits, Jaccard {pair.similarity:.2f}: {pair.left}, {pair.right}")

print("\nto keep of each cluster:")
for representative in result.clusters.representative:
    print(" ", result.ids[int(representative)])
