"""The corpus loader: what is read, what is skipped and named, and under which id."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import neardup
from neardup.corpus import records, sources, walk
from neardup.corpus.decode import GUESSED, REPAIRED, decode, open_regular, read_bytes
from neardup.corpus.sources import Files, Origins
from neardup.errors import UnreadableError, UsageError
from neardup.sketch import Recipe, fingerprint_batch
from neardup.tables import Int32Array, Skipped, UInt64Array

TEXT = "A quiet morning on the river, and the ferry waits for its first passengers."


class Document(NamedTuple):
    """What is known of a document once it has been read."""

    id: str
    text: str
    line: int


def read(*paths: object, **options: object) -> tuple[list[Document], Files]:
    files = Files([str(path) for path in paths], **options)  # type: ignore[arg-type]
    return read_all(files), files


def read_all(files: Files) -> list[Document]:
    """Read all parts, in turn."""
    texts: list[str] = []
    for part in files.parts():
        origins = Origins()
        texts += files.read(part, origins)
        files.enter(part, origins)
    return list(map(Document, files._ids, texts, files._line))


def write(folder: Path, **contents: str | bytes) -> Path:
    """Write files; ``__`` in a name stands for a slash and a trailing ``_txt`` for a suffix."""
    for name, content in contents.items():
        path = folder / name.replace("__", "/").replace("_txt", ".txt").replace("_jsonl", ".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def lines(*records: object) -> str:
    return "".join(
        (record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records
    )


def skips(files: Files) -> dict[str, str]:
    return {skip.id: skip.reason for skip in files.tally.skipped}


# Directories


def test_a_directory_is_read_in_the_sorted_order_of_ids(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a-b.txt", "a.txt", "a/b/c.txt", "B.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    documents, files = read(tmp_path)
    ids = [document.id for document in documents]
    assert ids == sorted(ids) == ["B.txt", "a-b.txt", "a.txt", "a/b/c.txt", "a/z.txt", "b.txt"]
    assert list(files.ids()) == ids
    assert [document.text for document in documents] == ids


def test_hidden_things_and_links_are_left_out_and_counted(tmp_path: Path) -> None:
    write(tmp_path, a_txt=TEXT, **{".hidden": TEXT, ".git__x_txt": TEXT})
    (tmp_path / "link.txt").symlink_to("a.txt")
    (tmp_path / "gone.txt").symlink_to("no/such/file")
    (tmp_path / "loop").symlink_to(".")
    documents, files = read(tmp_path)
    assert [document.id for document in documents] == ["a.txt"]
    assert files.tally.notes == {walk.HIDDEN: 2, walk.LINKS: 3}
    documents, _ = read(tmp_path, hidden=True)
    assert [document.id for document in documents] == [".git/x.txt", ".hidden", "a.txt"]


@pytest.mark.parametrize(
    "roots",
    [
        ["docs", "docs"],
        ["docs", "docs/"],
        ["docs", "./docs/../docs"],
        [".", "docs"],
        ["docs", "docs/inner"],
        ["docs", "link"],
        ["docs/a.txt", "docs"],
        ["docs/inner", "docs", "docs/a.txt"],
    ],
)
def test_a_file_reached_twice_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, roots: list[str]
) -> None:
    write(tmp_path, docs__a_txt=TEXT, docs__inner__b_txt=TEXT)
    (tmp_path / "link").symlink_to("docs")
    monkeypatch.chdir(tmp_path)
    documents, files = read(*roots)
    assert len(documents) == 2
    assert not files.tally.skipped


def test_a_hard_link_is_named(tmp_path: Path) -> None:
    write(tmp_path, a_txt=TEXT)
    os.link(tmp_path / "a.txt", tmp_path / "b.txt")
    documents, files = read(tmp_path)
    assert len(documents) == 1
    assert files.tally.skipped == [Skipped("b.txt", "walk", "hard link: the same file as a.txt")]


def test_with_several_roots_ids_begin_with_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, one__x_txt=TEXT, two__x_txt=TEXT, three_txt=TEXT)
    monkeypatch.chdir(tmp_path)
    documents, _ = read("two/", "./one", "three.txt")
    assert [document.id for document in documents] == ["two/x.txt", "one/x.txt", "three.txt"]


def test_special_files_are_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path, a_txt=TEXT)
    os.mkfifo(tmp_path / "pipe.txt")
    os.mkfifo(tmp_path / "rows.jsonl")
    documents, files = read(tmp_path)
    assert len(documents) == 1
    assert skips(files) == dict.fromkeys(("pipe.txt", "rows.jsonl"), "not a regular file")
    # Also when a file becomes one between listing and reading.
    with pytest.raises(UnreadableError, match="not a regular file"):
        open_regular(str(tmp_path / "pipe.txt"))


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """Give up root's rights for a while: root may read everything. Yields a folder."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        if root:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)


def test_what_may_not_be_read_is_named() -> None:
    with ordinary_user() as folder:
        write(folder, a_txt=TEXT, locked_txt=TEXT, dir__c_txt=TEXT)
        (folder / "locked.txt").chmod(0)
        (folder / "dir").chmod(0)
        documents, files = read(folder)
        (folder / "dir").chmod(0o700)
        assert [document.id for document in documents] == ["a.txt"]
        assert skips(files) == dict.fromkeys(("locked.txt", "dir"), "permission denied")


def test_a_file_that_vanishes_or_changes_is_named(tmp_path: Path) -> None:
    write(tmp_path, a_txt=TEXT, b_txt=TEXT, c_txt=TEXT)
    files = Files([tmp_path])
    (tmp_path / "b.txt").unlink()
    documents = read_all(files)
    assert [document.id for document in documents] == ["a.txt", "c.txt"]
    assert skips(files) == {"b.txt": "vanished while scanning"}
    (tmp_path / "a.txt").unlink()
    (_, error), second = files.read_again(np.array([0, 1]))
    assert isinstance(error, UnreadableError)
    assert str(error) == "vanished while scanning"
    assert second == (1, TEXT)


def test_a_missing_path_among_others_is_named_and_alone_it_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, a_txt=TEXT)
    documents, files = read(tmp_path, tmp_path / "nope")
    assert len(documents) == 1
    assert files.tally.missing == [
        Skipped(str(tmp_path / "nope"), "walk", "no such file or directory")
    ]
    # The ids are those of a run in which nothing is missing.
    assert documents[0].id == str(tmp_path / "a.txt")
    with pytest.raises(UsageError, match=r"nope: no such file or directory"):
        read(tmp_path / "nope")
    with pytest.raises(UsageError, match="no documents given"):
        read()


def test_names_of_any_bytes_survive(tmp_path: Path) -> None:
    names = [b"caf\xe9.txt", b"new\nline.txt", b"-rf.txt", b'comma,quote".txt', b"a\\b.txt"]
    for name in names:
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_text(TEXT)
    documents, files = read(tmp_path)
    assert sorted(os.fsencode(document.id) for document in documents) == sorted(names)
    assert sorted(os.fsencode(id) for id in files.ids()) == sorted(names)
    assert [text for _, text in files.read_again(np.arange(5))] == [TEXT] * 5


def test_long_paths_are_read(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*("level_" + "x" * 60 for _ in range(12)))
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text(TEXT)
    (tmp_path / ("n" * 240 + ".txt")).write_text(TEXT)
    documents, _ = read(tmp_path)
    assert len(documents) == 2


# Encodings


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_encodings_with_a_mark_give_the_same_text(encoding: str) -> None:
    text = "Grüße aus Köln; 東京. " + TEXT
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")
    assert decode(mark + text.encode(encoding)) == (text, None)


def test_bytes_that_are_no_utf8_are_guessed_or_repaired_with_a_note() -> None:
    text = "Señor Núñez pagó el café — “sí”, dijo."
    assert decode(text.encode("cp1252")) == (text, GUESSED)
    broken, note = decode(text.encode() + b"\xe9\xff and a bad tail\xc3")
    assert broken.startswith(text)
    assert note == REPAIRED
    assert decode(b"\xff\xfea")[1] == REPAIRED
    with pytest.raises(UnreadableError, match="neither"):
        decode(b"a \x81\x8d\x8f\x90\x9d")


def test_texts_that_differ_in_a_bad_byte_are_not_identical(tmp_path: Path) -> None:
    start = "Señor Núñez pagó el café en la esquina de la calle. ".encode() * 9
    (tmp_path / "a.txt").write_bytes(start + b"\xff end")
    (tmp_path / "b.txt").write_bytes(start + b"\xfe end")
    assert [pair.relation for pair in neardup.scan(tmp_path)] == ["near"]


def test_binary_is_told_from_text_with_a_slip() -> None:
    assert decode(b"a" * 500 + b"\x00" + b"b" * 500)[0].count("\x00") == 1
    for data in (b"\x00" * 1000, b"text" * 100 + b"\x00" * 1000, bytes(range(256)) * 8, b"\x00"):
        with pytest.raises(UnreadableError, match="binary"):
            decode(data)
    assert decode(b"") == ("", None)


def test_a_binary_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "sparse.txt"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    documents, files = read(tmp_path)
    assert not documents
    assert skips(files) == {"sparse.txt": "binary"}


def test_known_formats_are_named(tmp_path: Path) -> None:
    write(tmp_path, **{"a.pdf": b"%PDF-1.4\n", "b.docx": b"PK\x03\x04rest", "c.gz": b"\x1f\x8b"})
    _, files = read(tmp_path)
    assert {skip.kind for skip in files.tally.skipped} == {"unsupported format"}
    assert skips(files)["a.pdf"].endswith("PDF")


# Records


def test_records_have_their_own_ids_or_the_line(tmp_path: Path) -> None:
    rows = lines({"id": "a", "text": "one"}, "", {"id": 7, "text": "two"}, {"text": "three"})
    write(tmp_path, rows_jsonl=rows)
    documents, files = read(tmp_path / "rows.jsonl")
    assert [(d.id, d.text, d.line) for d in documents] == [
        ("a", "one", 1),
        ("7", "two", 3),
        ("rows.jsonl:4", "three", 4),
    ]
    assert list(files.read_again(np.array([0, 2]))) == [(0, "one"), (2, "three")]


def test_records_of_several_files_are_told_apart(tmp_path: Path) -> None:
    row = lines({"id": "1", "text": "one"})
    write(tmp_path, old_jsonl=row, sub__new_jsonl=row, c_txt="plain")
    documents, _ = read(tmp_path)
    assert [d.id for d in documents] == ["c.txt", "old.jsonl#1", "sub/new.jsonl#1"]


def test_an_id_used_twice_is_kept_apart_by_its_line(tmp_path: Path) -> None:
    rows = lines(
        {"id": "x", "text": "1"},
        {"id": "x", "text": "2"},
        {"id": "x@2", "text": "3"},
        {"id": "x", "text": "4"},
        {"id": "y", "text": "5"},
    )
    write(tmp_path, rows_jsonl=rows)
    _, files = read(tmp_path / "rows.jsonl")
    ids = list(files.ids())
    assert ids[0] == "x"
    assert ids[3:] == ["x@4", "y"]
    assert len(set(ids)) == 5
    assert any("used before" in note for note in files.tally.notes)


def test_bad_lines_are_named_with_their_number(tmp_path: Path) -> None:
    rows = lines(
        {"id": "a", "text": "one"},
        "{not json",
        '{"id": "cut", "text": "unterm',
        "[]",
        "null",
        '"just a string"',
        "12",
        '{"id": "nan", "text": NaN}',
        "{} {}",
        {"id": "b"},
        {"id": "c", "text": None},
        {"id": "d", "text": ["x"]},
        {"id": "e", "text": True},
        "[" * 100_000,
        '{"text": "x", "n": ' + "1" * 5000 + "}",
        "\ufeff" + '{"id":"f","text":"six"}',
        '\x1e{"id":"g","text":"seven"}',
    )
    write(tmp_path, rows_jsonl=rows + '{"id": "z", "text": "the file ends he')
    documents, files = read(tmp_path / "rows.jsonl")
    assert [d.id for d in documents] == ["a", "f", "g"]
    reasons = skips(files)
    assert set(reasons) == {f"rows.jsonl:{n}" for n in (*range(2, 16), 18)}
    assert reasons["rows.jsonl:2"].startswith("not JSON: ")
    assert reasons["rows.jsonl:4"] == "not an object: a JSON array"
    assert reasons["rows.jsonl:10"] == "no text: there is no field 'text'"
    assert reasons["rows.jsonl:11"] == "text is null: field 'text' must be a string"
    assert reasons["rows.jsonl:18"] == "the file ends inside a record"


def test_a_last_line_without_line_feed_is_a_record(tmp_path: Path) -> None:
    write(tmp_path, rows_jsonl='{"id":"a","text":"one"}\n{"id":"b","text":"two"}')
    documents, files = read(tmp_path / "rows.jsonl")
    assert [d.text for d in documents] == ["one", "two"]
    assert not files.tally.skipped


def test_half_a_surrogate_pair_does_not_stop_the_run(tmp_path: Path) -> None:
    write(tmp_path, rows_jsonl='{"id":"\\ud835","text":"half \\ud835 pair"}\n')
    result = neardup.scan(tmp_path / "rows.jsonl")
    assert list(result.ids) == ["\\ud835"]
    assert result.compared == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('[{"id": 1, "text": "x"}]', "a JSON array"),
        ('[\n{"text": "x"},\n{"text": "y"}\n]', "a JSON array"),
        ('{\n "id": 1,\n "text": "x"\n}', "objects over several lines"),
        ("no json\nat all\n", "no objects"),
        ('\ufeff{"text": "x"}'.encode("utf-16"), "UTF-16"),
        (b"PAR1 something", "Parquet"),
    ],
)
def test_what_is_not_json_lines_is_refused_with_a_reason(
    tmp_path: Path, content: str | bytes, reason: str
) -> None:
    write(tmp_path, a_jsonl=content, b_txt=TEXT)
    documents, files = read(tmp_path)
    assert [d.id for d in documents] == ["b.txt"]
    assert reason in skips(files)["a.jsonl"]


def test_a_json_array_of_objects_is_not_one_document(tmp_path: Path) -> None:
    write(tmp_path, **{"array.json": '[\n {"text": "x"}]', "config.json": '{"a": 1}'})
    documents, files = read(tmp_path)
    assert [d.id for d in documents] == ["config.json"]
    assert skips(files)["array.json"].startswith("not JSON lines")


def test_a_wrong_text_field_stops_before_the_work_and_names_the_fields(tmp_path: Path) -> None:
    write(tmp_path, a_jsonl=lines({"id": 1, "content": "x"}), b_txt=TEXT)
    with pytest.raises(
        UsageError, match=r"a.jsonl: no field 'text': its first records have id, content"
    ):
        read(tmp_path)
    documents, _ = read(tmp_path, text_field="content")
    assert [d.text for d in documents] == ["x", TEXT]
    # A stray file among good ones is left out and named.
    write(tmp_path, c_jsonl=lines({"text": "y"}))
    documents, files = read(tmp_path)
    assert [d.text for d in documents] == [TEXT, "y"]
    assert "no field 'text'" in skips(files)["a.jsonl"]


def test_nothing_is_loaded_all_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch is fingerprinted before the next file is opened."""
    for number in range(50):
        (tmp_path / f"{number:02}.txt").write_text(TEXT * 100)
    opened: list[str] = []

    def counting(path: str) -> bytes:
        opened.append(path)
        return read_bytes(path)

    ahead: list[int] = []
    monkeypatch.setattr(sources, "read_bytes", counting)
    monkeypatch.setattr("neardup.sketch.BATCH", 20_000)

    def watching(texts: list[bytes], made: Recipe) -> tuple[UInt64Array, Int32Array]:
        ahead.append(len(opened))
        return fingerprint_batch(texts, made)

    monkeypatch.setattr("neardup.pipeline.fingerprint_batch", watching)
    neardup.scan(tmp_path, threshold=0, min_similarity=0)
    assert len(opened) == 50
    assert len(ahead) > 10
    assert max(np.diff(ahead)) <= 4


@pytest.mark.parametrize("size", [1, 7, 60, 61, 200, 1000])
def test_how_files_are_cut_into_parts_does_not_matter(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": f"r{number}", "text": "x" * (number % 7)} for number in range(40)]
    broken = lines(*rows[:5], "", "{not json", "", *rows[5:], {"text": "no id"}, {"id": "no text"})
    write(tmp_path, a_txt=TEXT, b_jsonl=broken, c_txt=TEXT, d_jsonl=broken[:-5], e_txt=TEXT)
    documents, files = read(tmp_path)
    assert len(documents) == 3 + 2 * 41
    monkeypatch.setattr(sources, "_PART_BYTES", size)
    monkeypatch.setattr(sources, "_PART_FILES", 2)
    cut, in_parts = read(tmp_path)
    assert cut == documents
    assert len(in_parts.parts()) > 2
    assert sum(part.size for part in in_parts.parts()) == in_parts.total == files.total
    assert list(in_parts.ids()) == list(files.ids())
    assert in_parts.tally == files.tally
    again = in_parts.read_again(np.arange(len(cut)))
    assert [text for _, text in again] == [document.text for document in documents]


def test_a_corpus_file_that_is_cut_meanwhile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_PART_BYTES", 100)
    write(tmp_path, a_jsonl=lines(*({"text": TEXT} for _ in range(20))))
    files = Files([tmp_path])
    parts = files.parts()
    os.truncate(tmp_path / "a.jsonl", parts[1].start + 5)
    assert len(parts) > 5
    for part in parts:
        origins = Origins()
        list(files.read(part, origins))
        files.enter(part, origins)
    reasons = [skip.reason for skip in files.tally.skipped]
    assert "the file ends inside a record" in reasons
    assert reasons.count("cut while scanning: its last lines are gone") >= len(parts) - 2


@pytest.mark.parametrize("parser", ["orjson", "json"])
def test_both_parsers_of_json_give_the_same(
    parser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parser == "orjson":
        pytest.importorskip("orjson")
    else:
        monkeypatch.setitem(sys.modules, "orjson", None)
    records._quick.cache_clear()
    texts = [
        b'{"id": 123456789012345678901234567890, "text": "a"}',
        b'{"id": 1.50, "text": "b", "other": NaN}',
        b'{"id": 1e2, "text": "c", "other": 1e999}',
        b'{"id": "x", "id": "y", "text": "half \\ud835 pair"}',
        b'\xef\xbb\xbf{"id": 7, "text": "mark"}',
        b'\x1e{"id": -0, "text": "separator"}',
        b'{"id": true, "text": "caf\xe9"}',
        b'{"id": "deep", "text": "d", "other": ' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"id": "bad", "text": "raw \x01 control"}',
        b'{"id": 5 "text": "no comma"}',
    ]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(texts))
    documents, files = read(tmp_path / "rows.jsonl")
    assert [(document.id, document.text) for document in documents] == [
        ("123456789012345678901234567890", "a"),
        ("1.5", "b"),
        ("100.0", "c"),
        ("y", "half \ud835 pair"),
        ("7", "mark"),
        ("0", "separator"),
        ("rows.jsonl:7", "café"),
    ]
    kinds = [skip.kind for skip in files.tally.skipped]
    assert kinds == ["not JSON", "binary", "the file ends inside a record"]
    records._quick.cache_clear()
