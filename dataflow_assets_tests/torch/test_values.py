import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError, CorruptFile, RunError
from dataflow_assets.torch import FlowDataLoader, FlowDataset
from dataflow_assets.torch import opened_blocks as opened
from dataflow_assets.torch import stored_rows as stored
from dataflow_assets_tests.torch.made_steps import Rows, dataset, made, texts
from dataflow_assets_tests.walk import pipeline, rows, walk

HOSTILE: list[Any] = [
    None,
    "",
    "007",
    "长文本 " * 9,
    "line\u2028sep\x00",
    {"a": [1, None, {"a": 2}]},
    [2**70, -(2**65), 1.0, -0.0],
    {"\ud800": "\udfff"},
    12345678901234567890123,
    True,
    [],
    {},
    "null",
]
FORMATS = ["jsonl", "json", "csv", "parquet", "pickle"]


def all_rows(found: FlowDataset, **options: Any) -> list[str]:
    """Every row as text, in order of the numbers of their ids."""
    loader = FlowDataLoader(found, 3, chunk_rows=4, collate_fn=list, **options)
    every = [row for batch in loader for row in batch]
    return [json.dumps(row) for row in sorted(every, key=lambda row: int(row["row_id"].partition(":")[2]))]


def expected(found: Rows) -> list[str]:
    return [json.dumps(row) for row in found]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_format_gives_the_values_that_came_in(tmp_path: Path, format: str, shuffle: bool):
    came_in = [{"text": f"t{n}", "value": value} for n, value in enumerate(HOSTILE)]
    work = made(tmp_path, came_in, batch_rows=5, format=format, allow_pickle=format == "pickle")
    found = FlowDataset(work.pipeline)
    assert all_rows(found, shuffle=shuffle) == expected(rows(work, "kept"))
    assert all_rows(found, shuffle=shuffle, num_workers=1) == expected(rows(work, "kept"))
    assert [json.dumps(found[n]["value"]) for n in range(len(found))] == [json.dumps(v) for v in HOSTILE]


NAMES = ["text", "栏 一", 'qu"ote', "tab\tbed", "c0", "a.b", "def", "{}"]


@pytest.mark.parametrize("names", [NAMES, NAMES[:2] + NAMES[4:]])
@pytest.mark.parametrize("format", FORMATS)
def test_batches_of_columns_have_the_same_values(tmp_path: Path, format: str, names: list[str]):
    """In natural order, without a hook, the columns are read without rows between."""
    came_in = [
        {**{name: f"{name} {n}" for name in names}, "value": value, "deep": {"a": [n]}}
        for n, value in enumerate(HOSTILE)
    ]
    work = made(tmp_path, came_in, batch_rows=5, format=format, allow_pickle=format == "pickle")
    asked = ["value", *reversed(names), "row_id"]
    found = list(FlowDataLoader(FlowDataset(work.pipeline, columns=asked), 3, chunk_rows=4))
    assert [list(batch) for batch in found] == [asked] * len(found)
    together = {name: [value for batch in found for value in batch[name]] for name in asked}
    stored_rows = rows(work, "kept")
    assert json.dumps(together) == json.dumps({name: [row[name] for row in stored_rows] for name in asked})


@pytest.mark.parametrize("depth", [50, 120])
def test_values_nested_as_deep_as_python_goes(tmp_path: Path, depth: int):
    came_in = [{"text": "a", "value": json.loads("[" * depth + "]" * depth)}, {"text": "b", "value": {}}]
    found = dataset(tmp_path, came_in)
    (batch,) = FlowDataLoader(found, 2)
    assert [batch["value"], [row["value"] for row in found.__getitems__([0, 1])]] == [
        [row["value"] for row in came_in]
    ] * 2


def test_a_column_that_a_batch_has_not_is_none_there(tmp_path: Path):
    found = dataset(tmp_path, [{"text": "a"}, {"text": "b", "late": 3}], batch_rows=1)
    assert [row["late"] for row in found.__getitems__([0, 1])] == [None, 3]
    assert [batch["late"] for batch in FlowDataLoader(found)] == [[None], [3]]


def test_columns_are_those_that_are_named_in_that_order(tmp_path: Path):
    for format in ("jsonl", "parquet"):
        made_of = made(tmp_path / format, texts(4), format=format).pipeline
        found = FlowDataset(made_of, columns=["rare", "text"])
        assert [list(found[0]), list(next(iter(FlowDataLoader(found))))] == [["rare", "text"]] * 2
        twice = FlowDataset(made_of, columns=["rare", "text", "rare"])
        assert list(next(iter(FlowDataLoader(twice)))) == ["rare", "text"]
        with pytest.raises(ConfigError, match="no column 'nothing'"):
            FlowDataset(made_of, columns=["nothing"])
        with pytest.raises(ConfigError, match=r"expected a list of names: columns=\['text'\]"):
            FlowDataset(made_of, columns="text")


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
@pytest.mark.parametrize("shuffle", [False, True])
def test_large_files_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, shuffle: bool
):
    monkeypatch.setattr(stored, "_BLOCK_BYTES", 700)
    monkeypatch.setattr("dataflow_assets.io.formats.parquet._GROUP_BYTES", 900)
    monkeypatch.setattr(opened, "_PIECE_BYTES", 150)
    work = made(tmp_path, texts(60), batch_rows=None, format=format)
    found = FlowDataset(work.pipeline)
    assert len(found.stored.blocks) > 4
    assert all_rows(found, shuffle=shuffle) == expected(rows(work, "kept"))
    assert found[59] == rows(work, "kept")[59]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 400))
def test_any_runs_of_a_file_are_its_rows(tmp_path: Path, places: list[int], piece_bytes: int):
    lines = [json.dumps({"n": n, "text": "x" * (n * 7 % 90)}) + "\n" for n in range(41)]
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opened, "_PIECE_BYTES", piece_bytes)
        block = opened.JsonLines(lambda: path.open("rb"), "lines", 0, path.stat().st_size)
        for place in places:
            run = range(place, min(41, place + 13))
            found = [row["n"] for piece in block.pieces(run, ["n", "text"]) for row in piece]
            assert found == list(run)


def test_no_row_is_given_out_twice(tmp_path: Path):
    loader = FlowDataLoader(dataset(tmp_path, texts(5)), 2, collate_fn=list)
    for _ in range(2):
        for batch in loader:
            for row in batch:
                assert row.pop("text")


def test_a_file_that_changed_after_opening_is_not_read(tmp_path: Path):
    work = made(tmp_path, texts(5))
    found = FlowDataset(work.pipeline)
    (path,) = work.folder_of("kept").path.glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"row 3", b"row 8"))
    with pytest.raises(CorruptFile, match="not what was committed"):
        found[0]


def test_what_is_committed_later_is_another_data_set(tmp_path: Path):
    old = dataset(tmp_path, texts(5))
    new = dataset(tmp_path, [*texts(4), {"text": "new"}])
    assert (old.content != new.content, len(new)) == (True, 5)
    with pytest.raises(CorruptFile):
        list(FlowDataLoader(old))


def test_a_data_set_goes_to_another_process(tmp_path: Path):
    found = dataset(tmp_path, texts(9))
    again = pickle.loads(pickle.dumps(found))
    assert [again[n] for n in range(9)] == [found[n] for n in range(9)]


def test_a_step_is_known_by_name_and_number_and_pipeline_by_file(tmp_path: Path):
    made(tmp_path, texts(3))
    file = tmp_path / "p.yaml"
    file.write_text(
        "name: p\nsource: {path: in.jsonl}\nbatch_rows: 7\nsteps:\n  - {name: low, type: lowercase}\n"
    )
    root = tmp_path / "other"
    walk(pipeline(tmp_path, tmp_path / "in.jsonl", {"name": "low", "type": "lowercase"}, batch_rows=7))
    names = [FlowDataset(file, step, root=tmp_path / "data").name for step in (None, 0, 1, "source", "low")]
    assert names == ["low", "source", "low", "source", "low"]
    with pytest.raises(ConfigError, match="no step number 2; expected one of 0 source, 1 low"):
        FlowDataset(file, 2, root=tmp_path / "data")
    with pytest.raises(RunError):
        FlowDataset(file, root=root)


FAILS = {
    "name": "fails",
    "type": "map_python",
    "params": {
        "function": "dataflow_assets_tests.trace.row_functions:fails_where_told",
        "columns": {"seen": "bool"},
    },
}


def test_failed_rows_are_refused_unless_allowed(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text": "b", "fail": true}\n')
    failed = walk(pipeline(tmp_path, tmp_path / "in.jsonl", FAILS, batch_rows=5)).pipeline
    with pytest.raises(RunError, match="1 rows failed in step 'fails' and are not in the data set"):
        FlowDataset(failed)
    assert len(FlowDataset(failed, allow_partial=True)) == 1
    assert len(FlowDataset(failed, 0)) == 2


def test_missing_and_stale_batches_are_refused_unless_allowed(tmp_path: Path):
    work = made(tmp_path, texts(20))
    changed = pipeline(tmp_path, tmp_path / "in.jsonl", {"name": "kept", "type": "lowercase"}, batch_rows=7)
    with pytest.raises(RunError, match="0 of 3 batches up to date"):
        FlowDataset(changed)
    work.folder_of("kept").remove(work.known_manifest().batches[1])
    with pytest.raises(RunError, match="2 of 3 batches up to date"):
        FlowDataset(work.pipeline)
    assert len(FlowDataset(work.pipeline, allow_partial=True)) == 13


def test_numbers_outside_are_an_error(tmp_path: Path):
    found = dataset(tmp_path, texts(3))
    assert found[-1] == found[2]
    with pytest.raises(IndexError):
        found[3]


def test_a_slice_is_a_list_of_rows(tmp_path: Path):
    found = dataset(tmp_path, texts(20))
    every = [found[number] for number in range(20)]
    for part in (slice(0, 3), slice(None), slice(-2, None), slice(15, 2, -4), slice(9, 9), slice(18, 99)):
        assert found[part] == every[part]
    assert found[np.int64(3)] == every[3]
    for other in ("text", 1.5, None):
        with pytest.raises(TypeError, match="by number or by slice"):
            found[other]  # pyright: ignore[reportArgumentType, reportCallIssue]
