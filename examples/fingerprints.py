"""Fingerprints as a numpy array, and their Hamming distances."""

import numpy as np

import neardup
from neardup import index

texts = [
    "A short walk along the canal, past the lock and the old mill, takes half an hour.",
    "A short walk along the canal, past the lock and the new mill, takes half an hour.",
    "The library lends five books at a time; each day late costs ten cents.",
]
bits = neardup.fingerprint(texts)
for value, text in zip(bits, texts, strict=True):
    print(f"0x{value:016X}  {text}")

print("distances:")
print(np.bitwise_count(bits[:, None] ^ bits[None, :]))

# The index also takes fingerprints that come from elsewhere: of images, of other programs.
pairs = index.pairs(bits, 16)
for left, right, distance in zip(pairs.left, pairs.right, pairs.distance, strict=True):
    print(f"texts {left} and {right} are {distance} bits apart")
