"""Documents by their paths in a column; a row whose file cannot be read fails with its reason."""

import importlib.util
import os
from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.conversion.read_documents import ReadDocuments
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.sample_tables import ids, table
from dataflow_assets_tests.pdf_files import pdf_file


def operator(folder: Path, **params: object) -> ReadDocuments:
    made = build_operator("read_documents", params, folder)
    assert isinstance(made, ReadDocuments)
    return made


def test_paths_become_texts(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(pdf_file([["Page one."], ["第二页。"]], "T"))
    (tmp_path / "b.md").write_text("# Title\n")
    (tmp_path / "c.pdf").write_bytes(pdf_file([["secret"]], locked=True))
    rows = table(path=["a.pdf", "b.md", "c.pdf", "none.txt", None, "d.exe"], id=list(range(6)))
    made = operator(tmp_path)
    outcome = made.apply(rows)
    check_law(made, rows, outcome, "test")
    assert [tuple(row.values())[1:] for row in rows_of(outcome.kept)] == [
        ("a.pdf", 0, "Page one.\n第二页。", "pdf", "T", [0, 10]),
        ("b.md", 1, "# Title\n", "md", "Title", None),
    ]
    assert outcome.failed is not None
    reasons = [message.split(":")[0] for message in outcome.failed["error_message"].to_pylist()]
    assert reasons[0] == "encrypted" and reasons[2:] == ["missing path", "unknown format"]
    assert "No such file" in outcome.failed["error_message"][1].as_py()


def test_a_path_that_is_no_file_fails_its_row_alone(tmp_path: Path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "folder.pdf").mkdir()
    os.mkfifo(tmp_path / "pipe.txt")
    outcome = operator(tmp_path).apply(table(path=["a\0.txt", "folder.pdf", "pipe.txt", "a.txt"]))
    assert ids(outcome.kept) == ["r3"] and outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["SourceError"] * 3


def test_a_title_of_half_a_surrogate_pair_is_none(tmp_path: Path):
    content = pdf_file([["Text."]], "Title").replace(b"FEFF0054", b"FEFFD800")
    (tmp_path / "a.pdf").write_bytes(content)
    kept = operator(tmp_path).apply(table(path=["a.pdf"])).kept
    assert (kept["text"].to_pylist(), kept["title"].to_pylist()) == (["Text."], [None])


@pytest.mark.parametrize(("on_null", "kept", "rejected"), [("keep", ["r0"], []), ("reject", [], ["r0"])])
def test_rows_without_a_path_are_kept_or_rejected(tmp_path: Path, on_null: str, kept: list, rejected: list):
    outcome = operator(tmp_path, on_null=on_null).apply(table(path=[None]))
    assert (ids(outcome.kept), ids(outcome.rejected)) == (kept, rejected)


def test_a_missing_package_is_told_at_load(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'dataflow_assets\[documents\]'"):
        build_operator("read_documents", {})


def test_an_unknown_encoding_is_told_at_load():
    with pytest.raises(ConfigError, match="encoding 'klingon' is no text encoding of Python"):
        build_operator("read_documents", {"encoding": "klingon"})
