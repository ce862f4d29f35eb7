"""Fingerprints: the golden vectors, and agreement with the oracle on every kind of text.

Everything here runs twice, with the numpy and with the compiled kernels.
"""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import combinations, pairwise
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import fast
from neardup.errors import UsageError
from neardup.sketch import fingerprint, fingerprints, hashing, tokens
from neardup.sketch.features import Hashes, word_hashes
from neardup.sketch.simhash import weigh
from neardup.sketch.tokens import fold, unicode_words, utf8
from neardup.tables import UInt64Array

pytestmark = pytest.mark.usefixtures("kernels")

GOLDEN = json.loads((Path(__file__).parent / "golden" / "classic_simhash.json").read_text("utf-8"))
# Cached: the compiled kernels are asked for what the numpy ones were.
ORACLE = {
    "classic": cache(naive.classic),
    "simhash": cache(naive.simhash),
    "minhash": cache(naive.minhash),
}

# Fingerprint and number of features of the recipe simhash/1. A change here is a new recipe.
PINNED = {}
PINNED["simhash"] = [
    (
        "The quick brown fox jumps over the lazy dog and runs back to the quiet river bank.",
        0x03F29F752419259A,
        31,
    ),
    ("Über die Brücke führt kein Weg zurück, sagte der Müller.", 0xF131CFB0180427F2, 19),
    (
        "气象站今天早晨发布通知山区将有大雨请各村提前检查水渠并且把牲畜转移到高处",
        0xB4D6044B8607C146,
        71,
    ),
    ("3 1 4 1 5 9 2 6 5 3 5 8 9 7 9 3 2 3 8 4 6 2 6 4 3", 0x8785306464A49FDC, 32),
    ("naïve café 東京 2024 — ok", 0x8304519506819C48, 11),
]
# The same of minhash/1.
PINNED["minhash"] = [
    (PINNED["simhash"][0][0], 0x6D42544ED339BA4D, 16),
    (PINNED["simhash"][1][0], 0x302BCD20F3FA5B53, 9),
    (PINNED["simhash"][2][0], 0x47B8C218A61046DB, 35),
    (PINNED["simhash"][3][0], 0x82481F5C72FE7CDF, 24),
    (PINNED["simhash"][4][0], 0xD7BBB123FD69FE83, 5),
    ("", 0, 0),
    ("word", 0x2EE40FFC7752275C, 1),
    ("two words", 0x8CE70578793C6CBE, 1),
    ("The quick brown fox jumps over the lazy dog", 0x6D60D82DC329F264, 8),
    ("中华人民共和国宪法", 0x2747228AFA9B429C, 8),
]

IGNORABLE = "".join(chr(first) + chr(last) for first, last in naive.IGNORABLE)
ALPHABETS = {
    "ascii": st.characters(max_codepoint=0x7F),
    "accents": st.sampled_from("aàâçéèêëïñöøßÄÉÏÖÜŒœſﬁﬃ e\u0301\u0308o\u0327 JHTW\u030c\u0331"),
    "cjk": st.sampled_from("気象站今東京カタｶﾞﾀガﾞひらが々〇⼀豈𠀀𪜶한국어ㄱ。、 12ab"),
    "thai": st.sampled_from("ภาษาไทยกำลังลາວမြန်မာខ្មែរ๑๒ ab"),
    "hangul": st.sampled_from("한국어가각ᄀᄁ하ᅥᅵᆨᆩᇂㄱㅏㅎﾡￂᄓᆣᇃ\u115f\u1160\u1161\u11a7\u302e a"),
    "devanagari": st.sampled_from("हिन्दीभाषाक्षत्रज्ञ१२३। \u200d\u200c"),
    "arabic": st.sampled_from("العربيةﷲﻻلاًٌَُِّ٠١٢، \u0640\u061c"),
    "points": st.sampled_from(
        # Of every class, out of order as often as not: Hebrew, Arabic, and what goes with them.
        "אבשּׁשﬡﬤם \u05b0\u05b7\u05bc\u05bf\u05c1\u05c2\u0591\u05ae\ufb1eالى"
        "\u064b\u064e\u0651\u0652\u0670\u0654\u0655\u06e5\u06d6\u06dc\u06dd"
    ),
    "marks": st.sampled_from(
        "aeKÅsσςﬁ½ \u0301\u0308\u0323\u0327\u0328\u0334\u0338\u0342\u0345\u034f"
        "\u035c\u035d\u0360\u0361\u0488\u093c\u094d\u0e38\u0e48\u0f71\u0f72\u0f74\u0f80\u1dce\u20d0\u302a\u3099\u309a"
        "\U0001d165\U0001d16e\U000110ba\U0001e8d0"
    ),
    "emoji": st.sampled_from("😀👩\u200d🚀🇩🇪❤\ufe0f1\ufe0f\u20e3🏴\U000e0067 ok"),
    "surrogates": st.sampled_from("\ud800\udbff\udc00\udcff\udfffa b_é東"),
    "controls": st.sampled_from("\x00\x01\t\n\x0b\x0c\r\x1c\x1f\x7f\x85\u2028\u2029\u00a0ab é"),
    "ignorable": st.sampled_from(IGNORABLE + "ab é東"),
    "any": st.characters(),
    "any with surrogates": st.characters(categories=["L", "M", "N", "P", "S", "Z", "C"]),
}
TEXTS = {name: st.text(chars, max_size=60) for name, chars in ALPHABETS.items()}
VOCABULARY = [
    "a",
    "b",
    "ab",
    "the",
    "of",
    "7",
    "x_y",
    "Straße",
    "café",
    "東京",
    "ไทย",
    "क्ष",
    "\u00ad",
]
# Around the most marks in a row that are kept, also with what is dropped between them.
MARKS = st.sampled_from("\u0301\u0327\u0591\u05b0\u094d\u0e38\u3099\U0001e8d0")
BETWEEN = st.sampled_from(["", "", "a", " ", "\u200d", "\u034f", "\ufe0f", "東", "ﬁ", "é"])
TEXTS["floods"] = st.lists(
    st.tuples(BETWEEN, MARKS, st.sampled_from([1, 2, 15, 28, 29, 30, 31, 32, 60])), max_size=4
).map(lambda parts: "".join(between + mark * count for between, mark, count in parts))
TEXTS["repeated words"] = st.lists(st.sampled_from(VOCABULARY), max_size=60).map(" ".join)
MIXED = st.lists(st.one_of(*TEXTS.values()), max_size=4).map("".join)
TEXTS["mixed"] = MIXED


def check(texts: Sequence[str], sketch: str) -> None:
    """Assert that neardup and the oracle agree on a batch."""
    made = fingerprints(texts, sketch)
    expected = [ORACLE[sketch](text) for text in texts]
    found = list(zip(made.bits.tolist(), made.features.tolist(), strict=True))
    assert found == expected


def random_text(seed: int, words: int, vocabulary: int = 2000) -> str:
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(vocabulary)}" for _ in range(words))


# The golden vectors of the classic recipe


@pytest.mark.parametrize(("text", "value"), GOLDEN["fnv1a"].items())
def test_golden_fnv1a(text: str, value: str) -> None:
    assert naive.fnv1a(text.encode()) == int(value, 16)
    data = text.encode()
    buffer = np.frombuffer(data + bytes(hashing.PADDING), np.uint8)
    hashed = hashing.fnv1a(buffer, np.array([0]), np.array([len(data)]))
    assert hashed.tolist() == [int(value, 16)]


def test_golden_documents() -> None:
    documents = GOLDEN["documents"]
    assert len(documents) == 34
    texts = [document["text"] for document in documents]
    expected = [(int(one["fingerprint"], 16), one["features"]) for one in documents]
    made = fingerprints(texts, "classic")
    assert made.recipe == "classic/1"
    assert list(zip(made.bits.tolist(), made.features.tolist(), strict=True)) == expected
    assert [naive.classic(text) for text in texts] == expected
    # One by one, too: batches are an optimisation.
    assert [int(fingerprint([text], "classic")[0]) for text in texts] == made.bits.tolist()


def test_golden_pairs() -> None:
    assert len(GOLDEN["pairs"]) == 17
    bits = fingerprint([document["text"] for document in GOLDEN["documents"]], "classic").tolist()
    for pair in GOLDEN["pairs"]:
        distance = naive.hamming(bits[pair["a"]], bits[pair["b"]])
        assert distance == pair["hamming"]
        # Rounded, halves up: 24 bits are 62.5 % and count as 63.
        assert (200 * (64 - distance) + 64) // 128 == pair["similarity"]


# The recipes of our own


@pytest.mark.parametrize("sketch", PINNED)
def test_pinned(sketch: str) -> None:
    texts = [text for text, _, _ in PINNED[sketch]]
    expected = [(bits, features) for _, bits, features in PINNED[sketch]]
    assert [ORACLE[sketch](text) for text in texts] == expected
    made = fingerprints(texts, sketch)
    assert made.recipe == f"{sketch}/1 unicode/{unicodedata.unidata_version}"
    assert list(zip(made.bits.tolist(), made.features.tolist(), strict=True)) == expected


@pytest.mark.parametrize("sketch", PINNED)
def test_every_bit_is_used(sketch: str) -> None:
    bits = fingerprint((random_text(seed, 50) for seed in range(1000)), sketch)
    columns = (bits[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    share = columns.mean(axis=0)
    assert share.min() > 0.3
    assert share.max() < 0.7
    assert len(np.unique(columns, axis=1).T) == 64


def distances(one: UInt64Array, two: UInt64Array) -> list[int]:
    found: list[int] = np.bitwise_count(one ^ two).tolist()
    return found


def test_minhash_moves_little_for_a_changed_word() -> None:
    texts, edited = [], []
    for seed in range(100):
        words = random_text(seed, 200).split()
        texts.append(" ".join(words))
        words[seed] = "edited"
        edited.append(" ".join(words))
    found = distances(fingerprint(texts, "minhash"), fingerprint(edited, "minhash"))
    # Four of 201 pairs differ, and half of the bits they own: 0.64 are expected.
    assert 0.3 < np.mean(found) < 1.0
    assert max(found) <= 5


def test_minhash_tells_short_texts_apart() -> None:
    """Four pairs of words must fill 64 bins, and not all with the same bit."""
    texts = [random_text(seed, 5, 10**6) for seed in range(300)]
    bits = fingerprint(texts, "minhash")
    left, right = np.array(list(combinations(range(300), 2))).T
    found = distances(bits[left], bits[right])
    assert min(found) >= 10
    assert max(found) <= 54
    assert 31.5 < np.mean(found) < 32.5


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 0.9, 1.0])
@pytest.mark.parametrize("words", [20, 300])
def test_minhash_distance_follows_similarity(words: int, share: float) -> None:
    """On average it is 32 × (1 − J), J being the Jaccard similarity of the word pairs."""
    texts, others, expected = [], [], []
    for seed in range(200):
        common = random_text(seed, int(share * words), 10**6)
        one, two = (
            f"{common} {random_text(10_000 * side + seed, words, 10**6)}".split()[:words]
            for side in (1, 2)
        )
        texts.append(" ".join(one))
        others.append(" ".join(two))
        expected.append(32 * (1 - naive.jaccard(set(pairwise(one)), set(pairwise(two)))))
    found = distances(fingerprint(texts, "minhash"), fingerprint(others, "minhash"))
    assert abs(np.mean(found) - np.mean(expected)) < 1


# Agreement with the oracle


@pytest.mark.parametrize("sketch", ORACLE)
@pytest.mark.parametrize("kind", TEXTS)
def test_agrees_on_random_text(sketch: str, kind: str) -> None:
    @given(TEXTS[kind])
    def agrees(text: str) -> None:
        check([text], sketch)

    agrees()


@pytest.mark.parametrize("sketch", ORACLE)
@given(texts=st.lists(MIXED, max_size=12))
def test_agrees_on_random_batches(sketch: str, texts: list[str]) -> None:
    check(texts, sketch)


LONG_ASCII = "x" * 70_000
LONG_ACCENT = "é" * 70_000
FIXED = {
    "nothing": [""],
    "blank": ["  \n\t \r\n"],
    "no words": ["!!! ... --- \u3002\u2014"],
    "no texts": [],
    "one word": ["hello"],
    "one letter": ["x"],
    "one character": ["東"],
    "a word 70,000 times": ["hello " * 70_000],
    "a pair 70,000 times": ["one two " * 70_000],
    "a long word": [LONG_ASCII],
    "a long word that is not ASCII": [LONG_ACCENT],
    "long unspaced": ["東京" * 5000],
    "long words in company": [
        f"{LONG_ASCII} a {LONG_ACCENT} b",
        "a b c",
        f"a {LONG_ACCENT}",
        f"{LONG_ASCII}y",
    ],
    "lengths around a byte": ["".join(f"{'ab' * 200:.{n}} " for n in (254, 255, 256, 257, 300))],
    "lengths around a byte, many": [
        "".join(f"{i:0{n}} " for i in range(60)) for n in (254, 255, 256, 257, 300)
    ],
    "lengths around a byte, not ASCII": [f"{'é' * n} {'é' * n}x" for n in (126, 127, 128, 129)],
    "every length": [" ".join("abcdefgh"[i % 8] * i for i in range(1, 400))],
    "more words than a block": [random_text(1, 33_000, 300)],
    "more distinct words than a block": [random_text(2, 34_000, 10**9)],
    "a block of texts": ["one two three"] * 11_000,
    "empty among long": ["", "a " * 3000, "", " ", "b", "", random_text(3, 5000), "", ""],
    "empty at both ends": ["", "", "a b", "", ""],
    "only empty": [""] * 5,
    "a text above the batch size": ["x", random_text(4, 3000) + " y" * 200_000, "z"],
    "every length, not ASCII": [" ".join("éßñø"[i % 4] * i for i in range(1, 200))],
    "every length at every place": [
        f"{'.' * place}{'abcdefghijklmnopqrstuvwxyz'[:length]}{'.' * (length % 3)} {'z' * length}"
        for place in range(9)
        for length in range(1, 26)
    ],
    # The first and last characters of every size in UTF-8, at every place in eight bytes.
    "encodings at both ends": [
        f"{edge}{'x' * place}{edge}"
        for place in range(9)
        for edge in "\0\x7f\x80\xbf\xc0\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0003ffff\U0010ffff"
    ],
    "half surrogate pairs at both ends": [
        "\ud800",
        "\udfffx",
        "x\udfff",
        "é\ud800\udfff",
        "\ud800é",
    ],
    "growing": [
        word * n for n in (1, 2, 3, 7, 40, 1000) for word in ("\ufdfa", "½", "ŉ", "㌖", "ẞ")
    ],
    "growing in company": ["x" * 50, "\ufdfa " * 300, "", "ABC d", "\ufdfa", "É" * 99, "\ufdfa½"],
    "marks across texts": ["a" + "\u0591" * 20, "\u0591" * 20, "\u0591" * 31 + "a", "\u05b0b"],
    "order of marks across texts": [
        "a\u0591",
        "\u05b0b c",
        "\u05b0\u0591",
        "a\u0591\u05b0",
        "b\u05b0",
    ],
    "case of all kinds": ["ǅ ǈ ﬀ ẞ ß İ ı ſ ͅ ᾳ ᾼ ΐ ϐ ᏸ ꭰ Ა ა Ꙁ Ⰰ 𐐀 𞤀 Ⅷ ⓐ Ⓐ 𝐀 𝛛 ᴬ ᵃ ℵ"],
    "ties": ["a b", "b a", "a", "b", "a b a b"],
    "line ends": ["a\nb", "a\n", "\na", "a\r\nb", "\n"],
    "Kelvin and dotted I": ["\u212aelvin \u212a", "İstanbul Iı"],
    "beyond the word planes": ["a\U00040000b \U000f0000\U0010ffff \U000e0100x \U0003ffffa"],
}


@pytest.mark.parametrize("sketch", ORACLE)
@pytest.mark.parametrize("case", FIXED)
def test_agrees_on_fixed_cases(sketch: str, case: str) -> None:
    check(FIXED[case], sketch)


@given(st.one_of(*TEXTS.values()))
def test_words_and_folding(kernels: str, text: str) -> None:
    # Half a surrogate pair cannot be encoded: it becomes a question mark.
    expected = naive.fold(text).encode("utf-8", "replace")
    if kernels == "compiled":
        module = fast.kernels("sketch")
        assert module is not None
        buffer, offsets = module.folded([utf8(text)])
        assert offsets.tolist() == [0, len(expected) + 1]
        assert buffer[: offsets[1]].tobytes() == expected + b"\n"
        return
    assert fold(text) == expected.decode("utf-8")
    words = unicode_words([utf8(text)])
    assert word_hashes(words).values.tolist() == [
        naive.fnv1a(w.encode()) for w in naive.words(text)
    ]


@cache
def every_code_point() -> tuple[list[str], list[int]]:
    """Each between two letters, and how many distinct words and pairs those are."""
    # Unassigned planes and private use are alike: their edges will do.
    codes = [*range(0x40100), *range(0xDFFFE, 0xE1002), 0xEFFFF, 0xF0000, 0x10FFFF]
    texts = [f"a{chr(code)}b" for code in codes]
    words = map(naive.words, texts)
    return texts, [len(set(found)) + len(set(pairwise(found))) for found in words]


def test_every_code_point() -> None:
    """Each character between two letters joins them, stands alone, or separates them."""
    texts, features = every_code_point()
    found = fingerprints(texts).features
    wrong = np.flatnonzero(found != features).tolist()
    assert [ascii(texts[row]) for row in wrong] == []


@given(st.lists(st.binary(max_size=300), max_size=200), st.integers(0, 2**64 - 1))
def test_fnv1a(strings: list[bytes], state: int) -> None:
    lengths = np.array([len(string) for string in strings], np.int64)
    starts = np.cumsum(lengths) - lengths
    buffer = np.frombuffer(b"".join(strings) + b"\xff" * hashing.PADDING, np.uint8)
    hashes = hashing.fnv1a(buffer, starts, lengths)
    assert hashes.tolist() == [naive.fnv1a(string) for string in strings]
    # Continued from the hash of what stands before.
    before = np.array([naive.fnv1a(b"before " * i) for i in range(len(strings))], np.uint64)
    hashes = hashing.fnv1a(buffer, starts, lengths, before)
    assert hashes.tolist() == [naive.fnv1a(b"before " * i + s) for i, s in enumerate(strings)]
    assert hashing.fmix64(np.array([state], np.uint64)).tolist() == [naive.fmix64(state)]


def test_votes_do_not_overflow() -> None:
    """More features and heavier ones than narrow counters hold, between documents with none."""
    sizes = [0, 70_000, 0, 1, 300, 0]
    values = np.full(sum(sizes), 2**64 - 1, np.uint64)
    values[-1] = 1 << 63
    weights = np.ones(len(values), np.int64)
    weights[70_000] = 2**40 + 5
    hashes = Hashes(values, np.cumsum([0, *sizes]))
    votes, total = weigh(hashes, weights)
    assert total.tolist() == [0, 70_000, 0, 2**40 + 5, 300, 0]
    assert votes[:, 63].tolist() == total.tolist()
    assert votes[:, 0].tolist() == [0, 70_000, 0, 2**40 + 5, 299, 0]


# What must not matter

BATCH_TEXTS = [
    "",
    *(random_text(seed, words, 40) for seed, words in enumerate((1, 700, 3, 0, 90, 2, 300, 40))),
    "東京 " * 300,
    "x" * 600,
    "",
]


@pytest.mark.parametrize("sketch", ORACLE)
def test_batches_do_not_matter(sketch: str) -> None:
    whole = fingerprint(BATCH_TEXTS, sketch).tolist()
    for cut in range(len(BATCH_TEXTS) + 1):
        parts = [fingerprint(BATCH_TEXTS[:cut], sketch), fingerprint(BATCH_TEXTS[cut:], sketch)]
        assert np.concatenate(parts).tolist() == whole
    order = list(range(len(BATCH_TEXTS)))
    random.Random(5).shuffle(order)
    permuted = fingerprint([BATCH_TEXTS[row] for row in order], sketch).tolist()
    assert permuted == [whole[row] for row in order]
    assert fingerprint(iter(BATCH_TEXTS), sketch).tolist() == whole


@pytest.mark.parametrize("sketch", ORACLE)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("neardup.sketch.BATCH", (1, 2, 50, 1000, 4000)),
        ("neardup.sketch.hashing._BLOCK", (1, 7, 49, 100, 1000)),
        ("neardup.sketch.hashing._FEW", (1, 2, 10**6)),
        ("neardup.sketch.simhash._BLOCK", (1, 2, 10, 254)),
    ],
)
def test_sizes_of_blocks_do_not_matter(
    sketch: str, name: str, sizes: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in sizes:
        monkeypatch.setattr(name, size)
        check(BATCH_TEXTS, sketch)


SAME = {
    "line ends": ("one two\nthree four\nfive", "one two\r\nthree four\r\nfive"),
    "old line ends": ("one two\nthree four\nfive", "one two\rthree four\rfive"),
    "wrapping": ("one two three four five six", "one two\n   three four\n\tfive six\n"),
    "composed": (
        "Müller naïve Ångström ệ 한국어 が",
        unicodedata.normalize("NFD", "Müller naïve Ångström ệ 한국어 が"),
    ),
    "Hangul jamo": ("한국어 텍스트", unicodedata.normalize("NFD", "한국어 텍스트")),
    "compatibility jamo": ("가 각", "ㄱㅏ 가\u11a8"),
    "half-width jamo": ("가나", "ﾡￂﾤￂ"),
    "order of marks": ("a\u0323\u0307 b", "a\u0307\u0323 b"),
    "ligatures": ("the oﬃce ﬁnds a ﬂoor", "the office finds a floor"),
    "full width": ("Ｆｕｌｌ　Ｗｉｄｔｈ １２３", "Full Width 123"),
    "half width": ("ｶﾞﾗｽ ﾃﾚﾋﾞ", "ガラス テレビ"),
    "soft hyphen": ("syllables hyphenated", "syl\u00adla\u00adbles hy\u00adphen\u00adated"),
    "zero width": ("one word two", "o\u200bn\u200de wo\u2060rd\ufeff t\u200cwo\u200e"),
    "variation selectors": ("葛飾 word", "葛\U000e0100飾\ufe00 wo\ufe0frd"),
    "byte order mark": ("one two", "\ufeffone two"),
    "case": ("Straße ÀÉÎ Σίσυφος Ǆ ŉ ǰ", "STRASSE àéî ΣΊΣΥΦΟΣ ǆ ʼN J\u030c"),
    "marks on capitals": ("J\u030c H\u0331 T\u0308 W\u030a — x", "ǰ ẖ ẗ ẘ — x"),
    "sharp s": ("Maße groß", "MASSE GROSS"),
    "long s": ("Waſſer", "wasser"),
    "punctuation": ("one, two; three!", "one two -- three"),
}


@pytest.mark.parametrize("case", SAME)
def test_same_to_a_reader(case: str) -> None:
    one, two = SAME[case]
    assert one != two
    for sketch in ("simhash", "minhash"):
        assert fingerprint([one], sketch).tolist() == fingerprint([two], sketch).tolist() != [0]


@given(MIXED)
def test_normal_form_does_not_matter(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    one, two = fingerprint([composed, decomposed]).tolist()
    assert one == two


# Dotless i has no case pair of its own: its capital is I.
@given(st.text(st.characters(max_codepoint=0x17F, exclude_characters="\u0131"), max_size=60))
def test_case_does_not_matter(text: str) -> None:
    upper, lower, plain = fingerprint([text.upper(), text.lower(), text]).tolist()
    assert upper == lower == plain


DIFFERENT = {
    "order of words": ("one two three four", "four three two one"),
    "digits": ("road 5 is open", "road 7 is open"),
    "accents": ("resume of the year", "résumé of the year"),
    "word boundary": ("on to the shop", "onto the shop"),
    "underscore": ("a_b c", "a b c"),
    "how often": ("a b " + "c " * 9, "a " * 9 + "b c"),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_different_to_a_reader(case: str) -> None:
    one, two = DIFFERENT[case]
    assert fingerprint([one]).tolist() != fingerprint([two]).tolist()


# The interface


def test_types() -> None:
    made = fingerprints(["one two", "", "three"])
    assert made.bits.dtype == np.uint64
    assert made.features.dtype == np.int32
    assert made.features.tolist() == [3, 0, 1]
    assert made.bits[1] == 0
    for sketch, features in (("classic", [3, 0, 1]), ("minhash", [1, 0, 1])):
        made = fingerprints(["one two", "", "three"], sketch)
        assert made.bits.dtype == np.uint64
        assert made.features.dtype == np.int32
        assert made.features.tolist() == features
        assert made.bits[1] == 0
    assert len(fingerprint([])) == 0
    assert neardup.fingerprint is fingerprint
    assert fingerprint(["one two"]).tolist() == fingerprint(["one two"], "simhash").tolist()


def test_usage_errors() -> None:
    with pytest.raises(UsageError, match="list"):
        fingerprint("one text")
    with pytest.raises(UsageError, match="no sketch 'md5'; there are: simhash, minhash, classic"):
        fingerprint(["one text"], "md5")


def test_accents_that_stand_alone_are_punctuation() -> None:
    """Normalisation makes a blank and a combining mark of them."""
    for accent in "\u00b4\u00a8\u00b8\u02d8\u309b":
        assert naive.words(f"don{accent}t") == ["don", "t"]
        check([f"don{accent}t", accent, f"{accent}{accent} x", f"a\u0301{accent}\u0301"], "simhash")


def test_floods_of_marks_are_cut() -> None:
    """Without that, normalisation takes hours for a file of them."""
    flood = "a" + "\u0301\u0323" * 200_000
    assert len(fold(flood)) < 40
    texts = ["a" + "\u0301\u0323" * n + "b" for n in (1, 14, 15, 16, 100)] + ["\u05b0" * 99 + "x"]
    check(texts, "simhash")


def test_decomposed_text_is_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting floods is slow; text with a mark on every letter is not taken for one."""

    class Unwanted:
        def sub(self, replacement: str, text: str) -> str:
            raise AssertionError("nothing is to be cut")

    suspect, _ = tokens._floods()
    monkeypatch.setattr(tokens, "_floods", lambda: (suspect, Unwanted()))
    text = "e\u0301a\u0300" * 50
    assert fold(text) == "éà" * 50
    with pytest.raises(AssertionError, match="nothing is to be cut"):
        fold("e" + "\u0301" * 31)
