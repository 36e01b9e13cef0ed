"""Documents as the source of a pipeline: their rows, what is set aside, and what a change redoes."""

import importlib.util
from pathlib import Path

import pytest

from dataflow_assets.control import StopFlag
from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.pdf_files import pdf_file
from dataflow_assets_tests.sources.documents.docx_files import docx_file, paragraph
from dataflow_assets_tests.sources.reading import written
from dataflow_assets_tests.walk import UNCHANGED, Rows, rows, walk

PAGES = [["第一页：安装系统。"], [], ["Page three, and a parted exam-", "ple."]]


def pipeline(
    folder: Path, files: str | list[str] = "docs/**/*", batch_rows: int | None = 10_000, **source: object
) -> Pipeline:
    files = [str(folder / each) for each in ([files] if isinstance(files, str) else files)]
    return Pipeline(name="p", source={"files": files, **source}, root=str(folder / "data"), steps=[UNCHANGED])


def folder_of_documents(tmp_path: Path) -> None:
    written(tmp_path, "docs/手册.pdf", pdf_file(PAGES, "手册"))
    written(tmp_path, "docs/contract.docx", docx_file(paragraph("合同", "1")))
    written(tmp_path, "docs/sub/read.md", "# Read me\n")
    written(tmp_path, "docs/b.txt", "国标".encode("gb18030"))


def chosen(found: Rows, *names: str) -> list[tuple]:
    return [tuple(row[name] for name in names) for row in found]


def test_a_document_is_a_row_that_knows_where_its_pages_begin(tmp_path):
    folder_of_documents(tmp_path)
    found = rows(walk(pipeline(tmp_path)), "kept")
    assert chosen(found, "path", "format", "title", "pages") == [
        ("docs/b.txt", "txt", None, None),
        ("docs/contract.docx", "docx", "合同 A", None),
        ("docs/sub/read.md", "md", "Read me", None),
        ("docs/手册.pdf", "pdf", "手册", [0, 10, 11]),
    ]
    assert chosen(found, "text")[0] == ("国标",)
    text, starts = str(found[3]["text"]), [0, 10, 11]
    assert text == "第一页：安装系统。\n\nPage three, and a parted example."
    assert text[starts[2] :].startswith("Page three")


def test_a_page_is_a_row_and_a_page_without_text_is_set_aside(tmp_path):
    folder_of_documents(tmp_path)
    work = walk(pipeline(tmp_path, ["docs/*.pdf", "docs/*.txt"], rows="page"))
    assert chosen(rows(work, "kept"), "path", "page", "text") == [
        ("docs/手册.pdf", 1, "第一页：安装系统。"),
        ("docs/手册.pdf", 3, "Page three, and a parted example."),
        ("docs/b.txt", None, "国标"),
    ]
    [blank] = rows(work, "source", "rejected")
    assert (blank["file"], blank["reject_reason"]) == ("docs/手册.pdf", "no text")
    assert str(blank["reject_detail"]).startswith("no text: page 2 has none")


def test_documents_that_cannot_be_read_are_set_aside_by_name_and_reason(tmp_path):
    written(tmp_path, "docs/a.txt", "good")
    written(tmp_path, "docs/broken.pdf", b"%PDF-1.4 nothing")
    written(tmp_path, "docs/cut.pdf", pdf_file(PAGES)[:700])
    written(tmp_path, "docs/locked.pdf", pdf_file([["secret"]], locked=True))
    written(tmp_path, "docs/scan.pdf", pdf_file([[], []]))
    written(tmp_path, "docs/program.exe", b"MZ\0")
    written(tmp_path, "docs/README", "no extension")
    written(tmp_path, "docs/large.txt", "x" * 9000)
    written(tmp_path, "docs/empty.md", "")
    work = walk(pipeline(tmp_path, max_file_bytes=8000))
    assert chosen(rows(work, "kept"), "path") == [("docs/a.txt",)]
    assert sorted(chosen(rows(work, "source", "rejected"), "file", "reject_reason")) == [
        ("docs/README", "unknown format"),
        ("docs/broken.pdf", "broken"),
        ("docs/cut.pdf", "broken"),
        ("docs/empty.md", "no text"),
        ("docs/large.txt", "too large"),
        ("docs/locked.pdf", "encrypted"),
        ("docs/program.exe", "unknown format"),
        ("docs/scan.pdf", "no text"),
    ]


def test_a_new_a_changed_and_a_removed_document_redo_their_own_group(tmp_path):
    for number in range(100):
        written(tmp_path, f"docs/{number:03}.txt", f"text {number}")
    first = walk(pipeline(tmp_path))
    ids = {row["path"]: row["row_id"] for row in rows(first, "kept")}
    before = commits(first)
    assert len(before) > 3
    written(tmp_path, "docs/050b.txt", "new")
    written(tmp_path, "docs/070.txt", "changed")
    (tmp_path / "docs/020.txt").unlink()
    work = pipeline(tmp_path)
    second = walk(work)
    now = commits(second)
    assert 1 <= sum(now.get(key) != mark for key, mark in before.items()) <= 3
    found = {row["path"]: row for row in rows(second, "kept")}
    assert len(found) == 100
    assert found["docs/070.txt"]["text"] == "changed"
    assert all(row["row_id"] == ids[path] for path, row in found.items() if path in ids)


def commits(work) -> dict[str, int]:
    folder = work.folder_of("kept")
    return {key: folder.record(key).content_hash for key in work.known_manifest().batches}


@pytest.mark.parametrize("batch_rows", [1, 2, None])
def test_rows_are_the_same_for_every_batch_size(tmp_path, batch_rows: int | None):
    folder_of_documents(tmp_path)
    usual = walk(pipeline(tmp_path, rows="page"))
    other = walk(pipeline(tmp_path, rows="page", batch_rows=batch_rows))
    assert rows(other, "kept") == rows(usual, "kept")
    assert len({row["row_id"] for row in rows(usual, "kept")}) == 5
    assert len(rows(other, "source", "rejected")) == 1


def test_what_changed_is_told(tmp_path):
    for name in ("a", "b", "c"):
        written(tmp_path, f"docs/{name}.txt", name)
    walk(pipeline(tmp_path))
    written(tmp_path, "docs/b.txt", "changed")
    written(tmp_path, "docs/d.txt", "new")
    (tmp_path / "docs/a.txt").unlink()
    ingest = PipelineWork(pipeline(tmp_path)).ingest(lambda manifest: None)
    list(ingest.commit_all(StopFlag()))
    assert ingest.notes == [
        "docs/a.txt: gone: the rows leave the results",
        "docs/b.txt: changed",
        "docs/d.txt: new",
    ]


def test_columns_are_chosen_and_renamed(tmp_path):
    written(tmp_path, "docs/a.txt", "x")
    work = walk(pipeline(tmp_path, columns=["text", "path"], rename={"path": "file"}))
    assert [set(row) for row in rows(work, "kept")] == [{"row_id", "text", "file"}]


def test_a_format_that_is_said_counts_for_every_file(tmp_path):
    written(tmp_path, "docs/notes.log", "a line")
    assert chosen(rows(walk(pipeline(tmp_path, format="txt")), "kept"), "text", "format") == [
        ("a line", "txt")
    ]


def test_bad_documents_end_the_run_where_that_is_asked_for(tmp_path):
    written(tmp_path, "docs/a.pdf", b"nothing")
    with pytest.raises(SourceError, match=r"docs/a\.pdf.*broken: PDFium cannot read"):
        walk(pipeline(tmp_path, on_bad_line="fail"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({}, "expected `path` .* or `files` .*, found neither"),
        ({"path": "a", "files": "b"}, "found both"),
        ({"files": "a", "format": "csv"}, "`files` does not read csv; expected one of pdf, html"),
        ({"path": "a", "format": "pdf"}, "`path` does not read pdf"),
        ({"path": "a", "rows": "page"}, "rows: page is for documents"),
        ({"files": "a", "rows": "line"}, "rows: line has no meaning"),
        ({"files": []}, "path is empty"),
    ],
)
def test_a_source_that_fits_nothing_is_refused(source: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        Pipeline(name="p", source=source, steps=[UNCHANGED])


def test_a_missing_package_is_told_before_anything_is_read(tmp_path, monkeypatch):
    written(tmp_path, "docs/a.pdf", b"")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pypdfium2.*pip install 'dataflow_assets\[documents\]'"):
        walk(pipeline(tmp_path))


def test_input_replaces_the_files(tmp_path):
    written(tmp_path, "docs/a.txt", "x")
    changed = pipeline(tmp_path).with_changes(input=str(tmp_path / "docs/a.txt"))
    assert changed.source.files == str(tmp_path / "docs/a.txt") and changed.source.path is None
