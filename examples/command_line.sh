#!/bin/sh
# The ways to use neardup from the command line. Writes into the current folder.
set -eu
docs=$(dirname "$0")/docs

# The pairs as CSV, the clusters with what to keep, and a picture of them on the terminal.
neardup scan "$docs" -o pairs.csv --clusters clusters.csv --show

# A stricter and a looser search.
neardup scan "$docs" --threshold 3 --quiet -o near-identical.csv
neardup scan "$docs" --threshold 16 --min-similarity 0.3 --quiet -o related.csv

# MinHash in place of SimHash, and its result held against labelled pairs.
neardup scan "$docs" --sketch minhash --quiet -o minhash.csv
neardup eval minhash.csv "$(dirname "$0")/expected_pairs.csv"

# In a pipeline: pairs on standard output, everything else on standard error.
neardup scan "$docs" --quiet | cut -d, -f3 | sort | uniq -c

# In a test: exit code 1 when there are near-duplicates.
neardup scan "$docs/letters" --check --quiet > /dev/null || echo "letters: found duplicates"

# Two texts side by side, with the numbers of the textbook's SimHash.
neardup compare --sketch classic \
    "$docs/code/RollingAverage.java" "$docs/code/SlidingMean.java"

# The fingerprints alone.
neardup fingerprint "$docs/press"
