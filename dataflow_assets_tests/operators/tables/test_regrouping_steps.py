"""Steps that move rows between batches, through the files of a pipeline."""

import json
from pathlib import Path

import pytest

from dataflow_assets.control import StopFlag
from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.walk import UNCHANGED, pipeline, rows, walk

SHUFFLE = {"name": "mixed", "type": "shuffle", "params": {"seed": 3}}
BEST = "SELECT * FROM input WHERE n % 2 = 0 ORDER BY n DESC"
QUERY = {"name": "best", "type": "sql", "params": {"query": BEST}}


def write(folder: Path, numbers: range) -> Path:
    source = folder / "in.jsonl"
    source.write_text("".join(json.dumps({"n": n, "meta": {"n": [n]}}) + "\n" for n in numbers))
    return source


def numbers(work: PipelineWork, step: str, part: str = "kept") -> list[object]:
    return [row["n"] for row in rows(work, step, part)]


def test_a_shuffled_step_has_every_row_once_and_the_next_step_reads_them(tmp_path: Path):
    made = pipeline(tmp_path, write(tmp_path, range(25)), SHUFFLE, UNCHANGED, batch_rows=4)
    work = walk(made)
    mixed = numbers(work, "mixed")
    assert sorted(map(int, mixed)) == list(range(25)) and mixed != list(range(25))  # pyright: ignore[reportArgumentType]
    assert numbers(work, "kept") == mixed
    assert [row["meta"] for row in rows(work, "kept")] == [{"n": [n]} for n in mixed]


@pytest.mark.parametrize("step", [SHUFFLE, QUERY])
@pytest.mark.parametrize("format", ["jsonl", "parquet", "csv"])
def test_the_result_is_that_of_every_batch_size_and_format(tmp_path: Path, step: dict, format: str):
    source = write(tmp_path, range(25))
    found = []
    for batch_rows in (4, 25):
        made = pipeline(tmp_path / str(batch_rows), source, step, batch_rows=batch_rows, format=format)
        found.append(rows(walk(made), step["name"]))
    assert found[0] == found[1]


def test_rows_that_a_query_leaves_out_are_rejected_in_their_own_batch(tmp_path: Path):
    work = walk(pipeline(tmp_path, write(tmp_path, range(10)), QUERY, batch_rows=4))
    assert numbers(work, "best") == [8, 6, 4, 2, 0]
    assert numbers(work, "best", "rejected") == [1, 3, 5, 7, 9]
    folder = work.folder_of("best")
    records = [folder.record(key) for key in work.known_manifest().batches]
    assert [(record.rows_in, record.rows_out, record.rejected) for record in records if record] == [
        (4, 1, {"not_in_result": 2}),
        (4, 2, {"not_in_result": 2}),
        (2, 2, {"not_in_result": 1}),
    ]


def test_nothing_is_done_again_until_the_input_changes(tmp_path: Path):
    made = pipeline(tmp_path, write(tmp_path, range(12)), SHUFFLE, batch_rows=4)
    work = walk(made)
    state = work.state(made.step("mixed"))
    assert state is not None and state.is_done()
    before = {key: work.folder_of("mixed").record(key) for key in work.known_manifest().batches}
    assert {key: walk(made).folder_of("mixed").record(key) for key in before} == before
    write(tmp_path, range(13))
    changed = walk(made)
    assert sorted(map(int, numbers(changed, "mixed"))) == list(range(13))  # pyright: ignore[reportArgumentType]


def test_a_changed_row_in_one_batch_makes_the_result_stale(tmp_path: Path):
    made = pipeline(tmp_path, write(tmp_path, range(8)), QUERY, batch_rows=4)
    walk(made)
    write(tmp_path, range(1, 9))
    work = PipelineWork(made)
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    state = work.state(made.step("best"))
    assert state is not None and not state.is_done()
    assert numbers(walk(made), "best") == [8, 6, 4, 2]


def test_it_goes_on_where_it_was_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = pipeline(tmp_path, write(tmp_path, range(12)), SHUFFLE, batch_rows=4)
    whole = rows(walk(pipeline(tmp_path / "whole", tmp_path / "in.jsonl", SHUFFLE, batch_rows=4)), "mixed")
    work = PipelineWork(made)
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    state = work.state(made.step("mixed"))
    assert state is not None
    prepare = type(state)._verdict

    def torn(self, key, table, fingerprint):
        if key.endswith("2"):
            raise RunError("torn")
        return prepare(self, key, table, fingerprint)

    monkeypatch.setattr(type(state), "_verdict", torn)
    with pytest.raises(RunError, match="torn"):
        list(state.commit_all(StopFlag()))
    assert not state.is_done()
    monkeypatch.undo()
    assert rows(walk(made), "mixed") == whole


def test_a_row_that_was_moved_is_no_difference(tmp_path: Path, command_here: Command):
    write(tmp_path, range(9))
    file = tmp_path / "p.yaml"
    steps = json.dumps([SHUFFLE, QUERY])
    file.write_text(f"name: p\nsource: {{path: in.jsonl}}\nroot: data\nbatch_rows: 2\nsteps: {steps}\n")
    walk(load_pipeline(file))
    assert "has no such rows" in command_here(tmp_path, "sample", "p.yaml", "mixed", "--diff").out
    shown = command_here(tmp_path, "sample", "p.yaml", "best", "--diff").out
    assert set(shown.splitlines()[1::3]) == {"  + reject_reason: not_in_result"}


def test_a_join_around_a_step_that_moves_rows_is_refused(tmp_path: Path):
    join = {**UNCHANGED, "name": "joined", "depends_on": ["source", "mixed"]}
    work = PipelineWork(pipeline(tmp_path, write(tmp_path, range(3)), SHUFFLE, join))
    with pytest.raises(ConfigError, match="but mixed splits the rows, or moves them to other batches"):
        work.check_source_columns()


def test_a_query_is_checked_against_the_real_columns(tmp_path: Path):
    wrong = {**QUERY, "params": {"query": "SELECT row_id, nope FROM input"}}
    work = PipelineWork(pipeline(tmp_path, write(tmp_path, range(3)), wrong))
    with pytest.raises(ConfigError, match="nope"):
        work.check_source_columns()
