"""Batches that go on to the next steps from memory: made once, equal, committed at each step."""

import json
from pathlib import Path

import pytest

from dataflow_assets.control import StopFlag
from dataflow_assets.errors import ConservationError
from dataflow_assets.operators.operator import Outcome, RowOperator
from dataflow_assets.operators.registry import register
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import pipeline, rows, walk

TEXTS = ["One  A", "TWO", "three", "One  A", "five"]
LOWER = {"name": "lower", "type": "lowercase"}
TIDY = {"name": "tidy", "type": "normalize_whitespace"}
UNIQUE = {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}}
ALL = {"lower", "tidy", "unique_state", "unique"}


@register
class LosesRows(RowOperator):
    """Breaks the law on every batch, and counts them."""

    name = "loses_rows_when_handed_over"
    batches = 0

    def apply(self, table):
        LosesRows.batches += 1
        return Outcome(table.slice(0, 0))


def _read(folder: Path, *steps: dict, reuse: bool = True) -> PipelineWork:
    source = folder / "in.jsonl"
    source.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    work = PipelineWork(pipeline(folder, source, *steps, batch_rows=2), reuse)
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    return work


def _made(work: PipelineWork, step: str, selected: set[str]) -> list[bool]:
    """Runs a step's turn; for each batch whether it is new to that step."""
    keys = work.known_manifest().batches
    stream = work.stream(work.pipeline.step(step), keys, selected)
    return [not committed.reused for committed in stream.commit_all(StopFlag())]


def test_the_first_turn_commits_the_following_steps_too(tmp_path):
    work = _read(tmp_path, LOWER, TIDY, UNIQUE)
    _made(work, "lower", ALL)
    assert [row["text"] for row in rows(work, "tidy")] == ["one a", "two", "three", "one a", "five"]
    assert work.state(work.pipeline.step("unique")).work.summaries.record("in_b00002") is not None


def test_a_batch_made_ahead_is_new_to_its_step_once(tmp_path):
    work = _read(tmp_path, LOWER, TIDY, UNIQUE)
    _made(work, "lower", ALL)
    assert _made(work, "tidy", ALL) == [True, True, True]
    assert _made(work, "tidy", ALL) == [False, False, False]


def test_a_fresh_run_makes_each_batch_once(tmp_path):
    work = _read(tmp_path, LOWER, TIDY, UNIQUE, reuse=False)
    _made(work, "lower", ALL)
    _made(work, "tidy", ALL)
    assert work.folder_of("tidy").record("in_b00000").generation == 1


def test_steps_that_are_not_selected_do_not_follow(tmp_path):
    work = _read(tmp_path, LOWER, TIDY)
    _made(work, "lower", {"lower"})
    assert work.folder_of("tidy").record("in_b00000") is None


def test_what_was_handed_over_is_what_the_files_would_have_given(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    handed = _read(tmp_path / "a", LOWER, TIDY, UNIQUE)
    _made(handed, "lower", ALL)
    read = walk(_read(tmp_path / "b", LOWER, TIDY, UNIQUE).pipeline)
    for key in read.known_manifest().batches:
        ours, theirs = handed.folder_of("tidy").record(key), read.folder_of("tidy").record(key)
        assert (ours.fingerprint, ours.content_hash) == (theirs.fingerprint, theirs.content_hash)


def test_a_follower_that_fails_is_tried_once_and_leaves_the_step_before_it_whole(tmp_path):
    loses = {"name": "loses", "type": LosesRows.name}
    work = PipelineWork(_read(tmp_path, LOWER, loses).pipeline.with_changes(workers=1))
    LosesRows.batches = 0
    assert _made(work, "lower", {"lower", "loses"}) == [True, True, True]
    assert LosesRows.batches == 1
    with pytest.raises(ConservationError):
        _made(work, "loses", {"lower", "loses"})
