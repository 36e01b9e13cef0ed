"""Rows of a function, and rows with nothing but a number."""

import pytest

from dataflow_assets.errors import ConfigError, SourceError
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.pipeline_files import mistakes
from dataflow_assets_tests.sources.generated import row_makers
from dataflow_assets_tests.walk import UNCHANGED, rows, walk, without_ids

MAKERS = "dataflow_assets_tests.sources.generated.row_makers"


def pipeline(tmp_path, source: object, batch_rows: int | None = 10) -> Pipeline:
    root = str(tmp_path / "data")
    return Pipeline(name="p", source=source, batch_rows=batch_rows, root=root, steps=[UNCHANGED])


def made(tmp_path, name: str, **source: object) -> Pipeline:
    return pipeline(tmp_path, {"generator": f"{MAKERS}:{name}", **source})


def test_rows_of_a_function_are_exact_and_numbered(tmp_path):
    work = walk(made(tmp_path, "sums", params={"n": 25, "seed": 3}))
    found = rows(work, "kept")
    assert without_ids(found) == list(row_makers.sums(25, 3))
    assert [row["row_id"] for row in found] == [f"sums:{n}" for n in range(1, 26)]
    assert work.known_manifest().batches == ["sums_b00000", "sums_b00001", "sums_b00002"]


def test_a_function_is_called_again_only_for_other_parameters(tmp_path):
    walk(made(tmp_path, "sums", params={"n": 25}))
    row_makers.called.clear()
    walk(made(tmp_path, "sums", params={"n": 25}))
    assert row_makers.called == []
    work = walk(made(tmp_path, "sums", params={"n": 5}))
    assert len(rows(work, "kept")) == 5


def test_the_version_decides_where_it_is_given(tmp_path):
    assert not PipelineWork(made(tmp_path, "sums", params={"n": 2}, version="1")).source_is_current()
    walk(made(tmp_path, "sums", params={"n": 2}, version="1"))
    assert PipelineWork(made(tmp_path, "sums", params={"n": 2}, version="1")).source_is_current()
    assert not PipelineWork(made(tmp_path, "sums", params={"n": 2}, version="2")).source_is_current()


def test_changed_code_makes_the_rows_again(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_here.py").write_text("def f():\n    yield {'n': 1}\n")
    source = {"generator": "made_here:f"}
    walk(pipeline(tmp_path, source))
    assert PipelineWork(pipeline(tmp_path, source)).source_is_current()
    (tmp_path / "made_here.py").write_text("def f():\n    yield {'n': 2}\n")
    assert not PipelineWork(pipeline(tmp_path, source)).source_is_current()


def test_a_row_that_is_none_is_set_aside_with_its_reason(tmp_path):
    work = walk(made(tmp_path, "odd"))
    assert [row["text"] for row in rows(work, "kept")] == ["good", "also good"]
    reasons = {row["line"]: row["reject_detail"] for row in rows(work, "source", "rejected")}
    assert reasons[2] == "not an object: str; expected a dict"
    assert reasons[3].startswith("no JSON value: column 'text' holds date; expected text, numbers")
    assert sorted(reasons) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", r"broken raised RuntimeError: the well is dry.* 25 records were read"),
        ("exits", r"exits raised SystemExit: sys\.exit\(0\) was called.* 25 records were read"),
    ],
)
def test_a_function_that_raises_ends_the_run_after_what_it_gave(tmp_path, name: str, message: str):
    with pytest.raises(SourceError, match=message):
        walk(made(tmp_path, name, params={"n": 25}))


def test_a_secret_parameter_is_in_no_file(tmp_path):
    walk(made(tmp_path, "sums", params={"n": 2, "seed": 8675309}))
    written = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*.json"))
    assert b"8675309" not in written


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "has no 'nowhere'"),
        ("A_NUMBER", "A_NUMBER is a int; expected a function"),
        ("nothing", "returned NoneType; expected dicts"),
        ("called.append", "its code is in no file"),
    ],
)
def test_what_is_no_function_of_rows_is_told(tmp_path, name, message):
    with pytest.raises((ConfigError, SourceError), match=message):
        walk(made(tmp_path, name))


def test_empty_rows_have_a_number_and_an_id(tmp_path):
    work = walk(pipeline(tmp_path, {"empty": 25}))
    assert rows(work, "kept")[:2] == [{"row_id": "empty:1", "index": 0}, {"row_id": "empty:2", "index": 1}]
    assert len(rows(work, "kept")) == 25
    assert len(work.known_manifest().batches) == 3


def test_more_empty_rows_leave_the_full_batches_as_they_are(tmp_path):
    first = walk(pipeline(tmp_path, "empty:25"))
    before = first.layout.step(0).record("empty_b00001")
    second = walk(pipeline(tmp_path, {"empty": 40}))
    assert second.layout.step(0).record("empty_b00001") == before
    assert len(rows(second, "kept")) == 40


def test_empty_rows_in_one_file_and_with_another_name(tmp_path):
    work = walk(pipeline(tmp_path, {"empty": 3, "rename": {"index": "n"}}, batch_rows=None))
    assert [row["n"] for row in rows(work, "kept")] == [0, 1, 2]


def test_a_mistake_in_a_source_names_its_field(tmp_path):
    for source, message in {
        "{empty: 0}": "source.empty: input should be greater than or equal to 1",
        "{empty: 5, path: x}": "there is no field 'source.path' (there are: empty, columns, rename",
        "{generator: no dots}": "expected a function as `package.module:function`",
        "{hf: 'a:b:c:d'}": "expected name, name:config or name:config:split",
        "{}": "expected `path`",
    }.items():
        text = f"name: p\nsource: {source}\nsteps: [{{name: a, type: made_suffix}}]\n"
        (line,) = mistakes(tmp_path, text)
        assert message in line
