"""When compiled kernels are used, and what is special about them. That they give what the oracle
gives is tested where the numpy kernels are: in test_sketch.py and test_verify.py."""

from __future__ import annotations

import importlib
import os
import random
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import fast, sketch
from neardup.sketch import RECIPES, characters, fingerprint, tokens

PACKAGE = Path(fast.__file__).parent
TEXTS = ["The bridge reopens on Monday.", "Straße 5, straße 5", "中文 ｱ\u0301", "한국어", "", "x"]
BITS = [naive.simhash(text)[0] for text in TEXTS]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process that asks for compiled kernels."""
    monkeypatch.setenv(fast.VARIABLE, "1")
    monkeypatch.setattr(fast, "_loaded", {})
    monkeypatch.setattr(fast, "_failure", None)
    monkeypatch.setattr(fast, "_expected", 0)


def run(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Run Python code in a new process; variables that are None are unset."""
    merged = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={name: value for name, value in merged.items() if value is not None},
    )


FINGERPRINTS = f"""
import sys, neardup
from neardup import fast
print(neardup.fingerprint({TEXTS!a}).tolist() == {BITS!r}, "numba" in sys.modules, fast.how())
"""


# Which kernels are used


@pytest.mark.usefixtures("fresh")
def test_compiled_from_the_first_byte(compiled: ModuleType) -> None:
    assert fast.kernels("sketch") is compiled
    assert fast.how() == "compiled"
    assert fingerprint(TEXTS).tolist() == BITS


def test_never_compiled(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(fast.VARIABLE, "0")
    fast.expect(10**12)
    assert fingerprint(TEXTS).tolist() == BITS
    assert fast.kernels("sketch") is None
    assert fast.how() == "numpy, since NEARDUP_COMPILED is 0"


def test_too_little_text(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fast.VARIABLE)
    fast.expect(1000)
    assert fingerprint(TEXTS).tolist() == BITS
    assert fast.kernels("sketch") is None
    assert fast.how() == "numpy, since there is too little text for compiled ones to pay"


@pytest.mark.parametrize("value", [None, "0"])
def test_numba_is_not_even_imported(value: str | None) -> None:
    done = run(FINGERPRINTS, NEARDUP_COMPILED=value)
    assert done.stderr == ""
    assert done.stdout.startswith("True False numpy, since ")


def test_much_text(fresh: None, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(fast.VARIABLE)
    fast.expect(fast._ENOUGH - 1)
    assert fast.kernels("sketch") is None
    fast.expect(1)
    assert fast.kernels("sketch") is compiled
    assert fast.how() == "compiled"


@pytest.mark.parametrize("name", RECIPES)
def test_change_over_in_the_middle(
    name: str, fresh: None, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{text} {i} and so on" for i in range(50) for text in TEXTS]
    monkeypatch.setenv(fast.VARIABLE, "0")
    expected = sketch.fingerprints(texts, name)
    monkeypatch.delenv(fast.VARIABLE)
    monkeypatch.setattr(fast, "_expected", 0)
    monkeypatch.setattr(fast, "_ENOUGH", sum(map(len, texts)) // 2)
    monkeypatch.setattr(sketch, "BATCH", 200)
    used: list[str] = []

    def watch(module: ModuleType, function: str, kind: str) -> None:
        original: Callable[..., object] = getattr(module, function)

        def watched(*values: object) -> object:
            used.append(kind)
            return original(*values)

        monkeypatch.setattr(module, function, watched)

    hashes = "minhashes" if name == "minhash" else "simhashes"
    watch(sketch, f"_{hashes}", "numpy")
    watch(compiled, hashes, "compiled")
    made = sketch.fingerprints(texts, name)
    assert made.bits.tolist() == expected.bits.tolist()
    assert made.features.tolist() == expected.features.tolist()
    change = used.index("compiled")
    assert used[:change] == ["numpy"] * change
    # check() calls them, too.
    assert used[change:] == ["compiled"] * (len(used) - change)
    assert min(change, len(used) - change) > 10


# When they fail


@pytest.mark.usefixtures("fresh")
def test_numba_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "neardup.sketch.compiled", raising=False)
    assert fingerprint(TEXTS).tolist() == BITS
    assert fast.kernels("sketch") is None
    assert fast.how() == "numpy, since numba is not installed (pip install 'neardup[fast]')"


def test_numba_missing_in_a_new_process() -> None:
    finder = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
"""
    done = run(finder + FINGERPRINTS, NEARDUP_COMPILED="1")
    assert done.stderr == ""
    reason = "numba is not installed (pip install 'neardup[fast]')"
    assert done.stdout == f"True False numpy, since {reason}\n"


FAILURES = [
    RuntimeError("cannot cache function '_fold': no locator available for file 'compiled.py'"),
    ImportError("Numba needs NumPy 2.4 or less. Got NumPy 2.9."),
    ModuleNotFoundError("No module named 'llvmlite'", name="llvmlite"),
    SystemError("initialization of _internal failed without raising an exception"),
    OSError(28, "No space left on device"),
    ValueError("  first line\nsecond line\n"),
]


def named(error: Exception) -> str:
    message = str(error).strip().split("\n")[0]
    return f"numpy, since numba failed with {type(error).__name__}: {message}"


@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_compiled_kernels_cannot_be_defined(
    error: Exception, fresh: None, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def njit(**options: object) -> None:
        raise error

    monkeypatch.setattr("numba.njit", njit)
    monkeypatch.delitem(sys.modules, "neardup.sketch.compiled")
    assert fingerprint(TEXTS).tolist() == BITS
    assert fast.kernels("sketch") is None
    assert fast.how() == named(error)


@pytest.mark.parametrize("error", FAILURES, ids=repr)
def test_compiled_kernels_cannot_be_compiled(
    error: Exception, fresh: None, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def check() -> None:
        tries.append(1)
        raise error

    monkeypatch.setattr(compiled, "check", check)
    assert fingerprint(TEXTS).tolist() == BITS
    assert fast.kernels("sketch") is None
    assert fast.how() == named(error)
    assert len(tries) == 1


@pytest.mark.parametrize("function", ["simhashes", "minhashes", "shingles"])
def test_compiled_kernels_are_wrong(
    function: str, fresh: None, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(compiled, function)

    def wrong(*values: object) -> object:
        found, other = original(*values)
        return found[1:], other

    monkeypatch.setattr(compiled, function, wrong)
    assert fingerprint(TEXTS).tolist() == BITS
    assert fast.kernels("sketch") is None
    message = "numpy, since numba failed with RuntimeError: the kernels give wrong results"
    assert fast.how().startswith(message)


@pytest.mark.usefixtures("fresh", "compiled")
def test_a_folder_that_fails_does_not_stop_the_others() -> None:
    assert fast.kernels("corpus") is None
    assert fast.kernels("sketch") is not None
    assert fast.how().startswith("some compiled, but numba failed with ModuleNotFoundError: No mod")
    assert fingerprint(TEXTS).tolist() == BITS


def give_up_root() -> None:
    """Root may write everywhere; take that right from the program that is started next."""
    if os.geteuid() == 0:
        import ctypes

        # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE. Another user might not reach this Python.
        if ctypes.CDLL(None).prctl(24, 1, 0, 0, 0) != 0:
            raise PermissionError


@pytest.mark.skipif(sys.platform == "win32", reason="folders cannot be made read-only")
def test_read_only_installation(tmp_path: Path, compiled: ModuleType) -> None:
    """Nowhere to keep what has been compiled: numba refuses, and compiling anew each time would
    take longer than numpy."""
    shutil.copytree(PACKAGE, tmp_path / "neardup", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    code = f"""
import os, neardup
assert os.path.dirname(neardup.__file__) == {str(tmp_path / "neardup")!r}, neardup.__file__
try:
    open(os.path.join({str(tmp_path)!r}, "neardup", "written"), "w")
except PermissionError:
    print("read-only")
{FINGERPRINTS}
"""
    removed = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in removed}
    for path in folders:
        path.chmod(0o555)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment | {"NEARDUP_COMPILED": "1", "HOME": str(tmp_path / "neardup")},
            capture_output=True,
            text=True,
            preexec_fn=give_up_root,
        )
    except subprocess.SubprocessError:
        pytest.skip("root's rights cannot be given up here")
    finally:
        for path in folders:
            path.chmod(0o755)
    assert done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first == "read-only"
    assert second.startswith("True True numpy, since numba failed with RuntimeError: cannot cache")


# Folding


def check_folding(compiled: ModuleType, texts: Sequence[str]) -> None:
    """Assert that a batch, which has no line feed, is folded as numpy's kernels fold it."""
    buffer, offsets = compiled.folded([tokens.utf8(text) for text in texts])
    # A line feed takes part in nothing, so that all can be folded at once.
    expected = tokens.fold_utf8(tokens.utf8("\n".join(texts))) + b"\n"
    found = buffer[: offsets[-1]].tobytes()
    if found != expected:
        parts = found.removesuffix(b"\n").split(b"\n")
        wrong = [
            f"{text!a}: {part.decode()!a}, not {tokens.fold(text)!a}"
            for text, part in zip(texts, parts, strict=True)
            if part != tokens.fold_utf8(tokens.utf8(text))
        ]
        pytest.fail(f"{len(wrong)} of {len(texts)} folded wrongly, such as {wrong[:5]}")
    breaks = np.flatnonzero(np.frombuffer(expected, np.uint8) == ord("\n"))
    assert offsets.tolist() == [0, *(breaks + 1).tolist()]


SURROGATES = range(0xD800, 0xE000)
EVERY_CODE = [code for code in range(0x110000) if code not in SURROGATES and code != ord("\n")]
# The same, less most of those that are alike: ideographs, syllables, and what means nothing.
ALIKE = [(range(first, last), step) for first, last, step in (
    (0x3400, 0x4DC0, 50), (0x4E00, 0xA000, 50), (0xAC00, 0xD7A4, 9), (0xE000, 0xF900, 200),
    (0x17000, 0x18D00, 50), (0x1F900, 0x2F800, 500), (0x2FA20, 0xDFFF0, 5000),
    (0xE1000, 0x110000, 5000),
)]  # fmt: skip
CODES = [
    code
    for code in EVERY_CODE
    if not any(code in block and (code - block.start) % step for block, step in ALIKE)
]
MARKS = "\u0301\u0327\u0345\u0591\u093c\u094d\u0e38\u3099"


@pytest.mark.parametrize("form", ["{0}", "x{0}Y"])
def test_folding_every_code_point(form: str, compiled: ModuleType) -> None:
    check_folding(compiled, [form.format(chr(code)) for code in EVERY_CODE])


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: f"{ord(mark):04x}")
@pytest.mark.parametrize("form", ["{0}{1}", "{1}{0}", "e{1}{0}{1}Y"])
def test_folding_beside_a_mark(form: str, mark: str, compiled: ModuleType) -> None:
    check_folding(compiled, [form.format(chr(code), mark) for code in CODES])


def test_folding_doubled(compiled: ModuleType) -> None:
    check_folding(compiled, [chr(code) * count for code in CODES for count in (2, 3)])


@cache
def compositions() -> list[tuple[str, str]]:
    """All pairs of characters into which one decomposes canonically."""
    found = []
    for code in EVERY_CODE:
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.append((chr(int(parts[0], 16)), chr(int(parts[1], 16))))
    # The syllables of Korean decompose by rule.
    found += [(chr(0x1100 + i), chr(0x1161 + j)) for i in range(19) for j in range(21)]
    found += [(chr(0xAC00 + 28 * i), chr(0x11A8 + j)) for i in range(399) for j in range(27)]
    return found


def test_folding_what_composes(compiled: ModuleType) -> None:
    assert len(compositions()) > 12_000
    texts = [
        form.format(one, two)
        for one, two in compositions()
        for form in ("{0}{1}", "{1}{0}", "{0}\u200d{1}", "{0}\u0591{1}", "{0}\u05b0{1}", "{0} {1}")
    ]
    check_folding(compiled, texts + [text.upper() for text in texts])


@cache
def lively() -> dict[str, list[str]]:
    """Characters that take part in folding, by what they do."""
    chars = list(map(chr, CODES))
    dropped = [chr(code) for first, last in naive.IGNORABLE for code in range(first, last + 1)]
    return {
        "marks": [char for char in chars if unicodedata.combining(char)],
        "first": sorted({one for one, _ in compositions()}),
        "second": sorted({two for _, two in compositions()}),
        "changed": [char for char in chars if unicodedata.normalize("NFKD", char) != char],
        "capital": [char for char in chars if char.casefold() != char],
        "dropped": dropped[:60],
        "plain": list("aZ 9_é東ß—"),
    }


@pytest.mark.parametrize("longest", [2, 4, 12])
def test_folding_random_text(longest: int, compiled: ModuleType) -> None:
    rng = random.Random(longest)
    kinds = list(lively().values())
    texts = [
        "".join(rng.choice(rng.choice(kinds)) for _ in range(rng.randint(1, longest)))
        for _ in range(60_000)
    ]
    check_folding(compiled, texts)


def test_folding_marks_in_and_out_of_order(compiled: ModuleType) -> None:
    """One mark of every class after one of every other, between letters of all kinds."""
    by_class: dict[int, list[str]] = {}
    for char in lively()["marks"]:
        by_class.setdefault(unicodedata.combining(char), []).append(char)
    assert len(by_class) > 50
    # The last one composes with the least.
    marks = [chars[at] for chars in by_class.values() for at in (0, -1)]
    forms = ("a{0}{1}b", "é{0}{1}", "東{0}{1}é", "{0}{1}", "a{0}é{1}", "a{0}a{1}", "½{0}½{1}")
    check_folding(
        compiled, [form.format(one, two) for one in marks for two in marks for form in forms]
    )


@pytest.mark.parametrize(
    "between", ["", "\u200d", "\u034f", "\ufe0f", "a", " ", "東", "é", "ﬁ", "½"]
)
def test_folding_floods_of_marks(between: str, compiled: ModuleType) -> None:
    texts = [
        f"{base}{mark * first}{between}{mark * second}{end}"
        for base in ("a", "é", "東", "א", "")
        for mark in "\u0301\u0591\u094d\u0e38\u05b0\u302a\U0001e8d0"
        for first in (1, 15, 29, 30, 31, 60)
        for second in (0, 1, 15, 29, 30, 31)
        for end in ("", "b", "é")
    ]
    check_folding(compiled, texts)
    # Of several classes, in order.
    marks = "".join(sorted(lively()["marks"], key=unicodedata.combining))
    calm = [mark for mark in marks if not any(mark == two for _, two in compositions())]
    texts = ["é" + "".join(calm[at : at + size]) for at in range(200) for size in (29, 30, 31, 32)]
    check_folding(compiled, texts)


def test_folding_a_mark_does_not_outlive_its_document(compiled: ModuleType) -> None:
    texts = ["é\u0591", "\u05b0é", "é" + "\u0591" * 30, "\u0591" * 30 + "é", "\u05b0"]
    check_folding(compiled, texts * 3)


def test_folding_what_grows(compiled: ModuleType) -> None:
    """Texts may outgrow the buffer, which has room for a quarter more."""
    texts = []
    for char in ("\ufdfa", "½", "ŉ", "㌖", "\u3300", "ẞ", "\U0001d15e", "\u0390"):
        for count in (*range(1, 40), 1000, 20_000):
            texts.append(char * count)
            texts.append(f"{char * count}{'a' * (count % 70)}")
    check_folding(compiled, texts)
    for text in texts:
        check_folding(compiled, [text])
    # Grown by as much as fits, before a run of letters that does not grow, so many times that what
    # each takes too much would not fit the buffer.
    for count in range(0, 60, 5):
        for letters in range(0, 200, 20):
            check_folding(compiled, ["½" * count + "a" * letters] * 50)
    # Beside others, which must not be written over.
    for count in range(0, 60, 3):
        check_folding(compiled, ["\ufdfa" * count, "A" * count, "", "½" * count, "É" * 200, "x"])


# As people write them, with marks that stay as they are: more than a flood of them in each.
ORDINARY = {
    "English": "It’s “quoted” — 20 €, naïve façade … ",
    "German": "Die Größe der Äcker, Übermaß und Öl; ",
    "Vietnamese": "Tiếng Việt có nhiều dấu, được viết liền. ",
    "Russian": "Съешь ещё этих мягких французских булок. ",
    "Greek": "Ξεσκεπάζω τὴν ψυχοφθόρα βδελυγμία, ΆΛΦΑ. ",
    "Chinese": "气象站今天早晨发布通知，１２月３日。",
    "Japanese": "東京のカタカナ「ガラス」とｶﾅ。",
    "Korean": "한국어 텍스트는 음절로 쓴다. ",
    "Thai": "ที่นี่มีปลาตัวใหญ่ผู้คน",
    "Hindi": "हिन्दी भाषा में क्षत्रिय और ज्ञान, विद्यार्थी। ",
    "Arabic": "اللُّغَةُ العَرَبِيَّةُ جَمِيلَةٌ، ",
    "Hebrew": "שלום עליכם, ועֶרֶב טוב. ",
    "symbols": "½ № ™ ﬁ x² ① ❤\ufe0f 👩\u200d🚀 soft\u00adhyphen ",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_text_is_folded_by_the_kernel(
    name: str, compiled: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts it cannot fold are folded by Python, five times as slowly."""
    left: list[bytes] = []

    def fold_utf8(text: bytes) -> bytes:
        left.append(text)
        return tokens.fold_utf8(text)

    monkeypatch.setattr(compiled, "fold_utf8", fold_utf8)
    text = unicodedata.normalize("NFC", ORDINARY[name]) * 20
    check_folding(compiled, [text, text.upper()])
    assert left == []
    check_folding(compiled, ["e\u0301", text])
    assert left == ["e\u0301".encode()]


def test_folding_long_and_empty_texts(compiled: ModuleType) -> None:
    long = "Ein langer Text — ÄÖÜ, " * 50_000
    check_folding(
        compiled, ["", long, "", "", "한", long.upper(), "a\u0301" * 100_000, "", "x" * 10**6]
    )
    check_folding(compiled, [""])
    check_folding(compiled, [""] * 1000)
    buffer, offsets = compiled.folded([])
    assert offsets.tolist() == [0]
    assert len(buffer) > 0


def test_folding_at_both_ends(compiled: ModuleType) -> None:
    """The first and last characters of every size in UTF-8 end and begin documents."""
    edges = (
        "\0\t\r\x1f@AZ[`az{\x7f\x80\xbf\xc0\xff\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
    )
    texts = [f"{one}{'x' * at}{two}" for one in edges for two in edges for at in range(9)]
    random.Random(1).shuffle(texts)
    check_folding(compiled, texts)


LIVELY = st.one_of(*(st.sampled_from(chars) for chars in lively().values()), st.characters())


@given(texts=st.lists(st.text(LIVELY, max_size=20), max_size=8))
def test_folding_agrees_with_the_oracle(compiled: ModuleType, texts: list[str]) -> None:
    buffer, offsets = compiled.folded([tokens.utf8(text) for text in texts])
    found = [buffer[start:end].tobytes() for start, end in pairwise(offsets)]
    assert found == [naive.fold(text).encode("utf-8", "replace") + b"\n" for text in texts]


# Hashes and votes

ZERO = bytes.fromhex("d56bb95342870836")


def test_words_whose_hash_is_zero(compiled: ModuleType) -> None:
    """Zero marks an empty slot of the table of hashes. No UTF-8 of eight bytes is known to have
    that hash, so bytes are words here."""
    assert naive.fnv1a(ZERO) == 0
    words = [ZERO, b"ab", ZERO, ZERO, b"cd", b"ab", ZERO] + [b"ef", ZERO] * 5
    is_word = np.ones(256, np.uint8)
    is_word[[ord(" "), ord("\n")]] = 0
    _, pages, classes = characters.class_table()
    for count in range(len(words) + 1):
        some = words[:count]
        buffer, offsets = compiled.joined([b" ".join(some)])
        lengths = np.array([len(word) for word in some], np.int64)
        starts = np.cumsum(lengths + 1) - lengths - 1
        pairs = [one + b" " + two for one, two in pairwise(some)]
        single, double = Counter(map(naive.fnv1a, some)), Counter(map(naive.fnv1a, pairs))
        for name in ("simhash", "classic"):
            made = RECIPES[name]
            weight_of: Counter[int] = Counter()
            for values, weight in ((single, 1), (double, 2)):
                for value, times in values.items():
                    mixed = naive.fmix64(value) if made.mixed else value
                    weight_of[mixed] += weight * (times.bit_length() if made.damped else times)
            expected = [naive.majority(weight_of)], [len(single) + len(double)]
            arguments = (False, np.uint64(2), made.mixed, made.damped, is_word, pages, classes)
            bits, features = compiled._simhash(buffer, offsets, *arguments)
            assert (bits.tolist(), features.tolist()) == expected
            in_words = tokens.Words(buffer, starts, lengths, np.array([0, count]))
            bits, features = sketch._simhashes(in_words, made)
            assert (bits.tolist(), features.tolist()) == expected


def check_voters(compiled: ModuleType, hashes: Iterable[int]) -> None:
    values = np.array(list(hashes), np.uint64)
    slots = 16
    while slots < 4 * len(values):
        slots *= 2
    counted = Counter(values.tolist())
    for damped in (False, True):
        # Rubbish of the document before, and beyond the table.
        keys = np.full(2 * slots, 1, np.uint64)
        counts = np.full(2 * slots, 7, np.uint32)
        voters = np.zeros(len(values) + 1, np.uint64)
        n, distinct = compiled._voters(values, damped, keys, counts, voters)
        votes = {value: c.bit_length() if damped else c for value, c in counted.items()}
        assert Counter(voters[:n].tolist()) == votes
        assert distinct == len(counted)
        assert (keys[slots:] == 1).all()
        assert (counts[slots:] == 7).all()
    keys = np.full(2 * slots, 1, np.uint64)
    n = compiled._distinct(values, keys)
    assert values[:n].tolist() == list(counted)
    assert (keys[slots:] == 1).all()


INVERSE = pow(0x9E3779B97F4A7C15, -1, 2**64)


def in_slot(slot: int, slots: int, count: int) -> list[int]:
    """Different hashes that all belong in one slot of the voters' table."""
    return [value * INVERSE & naive.MASK for value in beginning(slot, slots, count)]


def beginning(slot: int, slots: int, count: int) -> list[int]:
    """Different hashes with the same upper bits."""
    first = slot << (64 - (slots - 1).bit_length())
    return [first + i for i in range(count)]


def test_voters(compiled: ModuleType) -> None:
    check_voters(compiled, [])
    for count in (*range(1, 70), 255, 256, 1023, 1025, 70_000):
        check_voters(compiled, [0] * count)
        check_voters(compiled, [naive.MASK] * count)
        check_voters(compiled, [0, 1] * count)
    for size in (4, 5, 16, 300):
        slots = 16
        while slots < 4 * size:
            slots *= 2
        # The last slots go on at the first.
        for slot in (0, 1, slots - 2, slots - 1):
            check_voters(compiled, in_slot(slot, slots, size))
            few = in_slot(slot, slots, size // 3)
            check_voters(compiled, [*few, 0, *few, *few[:1], 0][:size])
            few = beginning(slot, slots, size // 2)
            check_voters(compiled, [*few, *few[::-1], 0])
    # Hashes that are not mixed: neighbours, and such that differ in one bit only.
    check_voters(compiled, range(1000))
    check_voters(compiled, [1 << i for i in range(64)] * 3)
    check_voters(compiled, [i << 48 for i in range(1000)])


HASHES = st.one_of(
    st.sampled_from([0, 1, naive.MASK, 1 << 63, *in_slot(15, 16, 4), *in_slot(0, 16, 4)]),
    st.integers(0, naive.MASK),
)


@given(hashes=st.lists(HASHES, max_size=300))
def test_voters_of_random_hashes(compiled: ModuleType, hashes: list[int]) -> None:
    check_voters(compiled, hashes)


@pytest.mark.parametrize("count", [0, 1, 7, 254, 255, 256, 257, 509, 510, 511, 1000, 70_000])
def test_counters_do_not_overflow(count: int, compiled: ModuleType) -> None:
    rng = np.random.default_rng(count)
    for values in (
        np.full(count, naive.MASK, np.uint64),
        rng.integers(0, naive.MASK, count, np.uint64, endpoint=True),
    ):
        votes = np.zeros(64, np.int64)
        compiled._count(values, 1, votes)
        compiled._count(values, 2, votes)
        columns = (values[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        assert votes.tolist() == (3 * columns.sum(axis=0)).tolist()


def test_a_constant_changed_elsewhere_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba's cache would go on with the old one."""
    pytest.importorskip("numba")
    monkeypatch.setattr("neardup.sketch.characters.MOST_MARKS", 20)
    monkeypatch.delitem(sys.modules, "neardup.sketch.compiled", raising=False)
    with pytest.raises(RuntimeError, match="other constants"):
        importlib.import_module("neardup.sketch.compiled")
