import json
from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of
from dataflow_assets.control import StopFlag
from dataflow_assets.errors import ConfigError
from dataflow_assets.failed_queue.edits import BatchEdits, StepEdits
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.trace.homes import Home
from dataflow_assets.trace.life import Change, ReadLimit, RowLife, life_of, lives_of, read_by
from dataflow_assets_tests.walk import pipeline, walk

FUNCTIONS = "dataflow_assets_tests.trace.row_functions"
LOWER = {"name": "lower", "type": "lowercase"}
FAILS = {
    "name": "fails",
    "type": "map_python",
    "params": {"function": f"{FUNCTIONS}:fails_where_told", "columns": {"seen": "bool"}},
}
LONG = {"name": "long", "type": "filter_length", "params": {"min_chars": 3}}
UNIQUE = {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}}
CHUNKS = {"name": "chunks", "type": "chunk_text", "params": {"max_chars": 12}}
TEXTS = ["One two.", "x", "ONE TWO.", "Three four."]


def made(
    folder: Path, *steps: dict, texts: list[str] = TEXTS, fail: int | None = None, **fields
) -> PipelineWork:
    lines = [
        json.dumps({"text": text, **({"fail": True} if number == fail else {})})
        for number, text in enumerate(texts)
    ]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    return walk(pipeline(folder, folder / "in.jsonl", *steps, batch_rows=2, **fields))


def outcomes(life: RowLife) -> list[tuple[str, str]]:
    return [(passage.name, passage.outcome) for passage in life.passages]


def test_a_row_that_is_kept_shows_what_each_step_changed(tmp_path: Path):
    life = life_of(made(tmp_path, LOWER, FAILS, LONG), "in:1")
    assert outcomes(life) == [("lower", "kept"), ("fails", "kept"), ("long", "kept")]
    assert [passage.changes for passage in life.passages] == [
        [Change("text", "One two.", "one two.")],
        [Change("seen", None, True)],
        [],
    ]
    assert (life.batch, life.place, life.row) == (
        "in_b00000",
        "in.jsonl, line 1",
        {"row_id": "in:1", "text": "One two."},
    )


def test_a_rejected_row_ends_with_its_reason(tmp_path: Path):
    life = life_of(made(tmp_path, LOWER, LONG, UNIQUE), "in:2")
    assert outcomes(life) == [("lower", "kept"), ("long", "rejected")]
    assert life.passages[-1].reason == "too_short"


def test_a_duplicate_names_the_row_that_it_repeats(tmp_path: Path):
    work = made(tmp_path, LOWER, LONG, UNIQUE)
    last = life_of(work, "in:3").passages[-1]
    assert (last.reason, last.details) == ("duplicate", {"duplicate_of": "in:1"})
    assert read_by(work, "unique", "in:1") == {"row_id": "in:1", "text": "one two."}


def test_a_failed_row_ends_with_class_message_and_attempts(tmp_path: Path):
    last = life_of(made(tmp_path, LOWER, FAILS, fail=3), "in:4").passages[-1]
    assert (last.outcome, last.error_class, last.error_message, last.attempts) == (
        "failed",
        "ValueError",
        "cannot do three four.",
        1,
    )


def test_a_line_that_is_no_row_says_why(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n{"text\n')
    life = life_of(walk(pipeline(tmp_path, tmp_path / "in.jsonl", LOWER)), "in:2")
    assert (life.unreadable or "").startswith("malformed JSON")
    assert (life.row["raw"], life.passages) == ('{"text', [])


def test_a_split_row_names_its_children_and_where_they_ended(tmp_path: Path):
    work = made(tmp_path, CHUNKS, LONG, texts=["First one. Second one. Hi"])
    life = life_of(work, "in:1")
    assert outcomes(life) == [("chunks", "split")]
    assert life.passages[0].children == ["in:1/0", "in:1/1", "in:1/2"]
    assert [(each.row_id, each.step, each.outcome, each.reason) for each in life.descendants] == [
        ("in:1/0", "long", "kept", None),
        ("in:1/1", "long", "kept", None),
        ("in:1/2", "long", "rejected", "too_short"),
    ]


def test_a_child_has_the_life_of_its_parent_before_its_own(tmp_path: Path):
    work = made(tmp_path, LOWER, CHUNKS, LONG, texts=["First one. Second one. Hi"])
    life = life_of(work, "in:1/1")
    assert [(passage.name, passage.row_id) for passage in life.passages] == [
        ("lower", "in:1"),
        ("chunks", "in:1/1"),
        ("long", "in:1/1"),
    ]
    assert life.row["text"] == "First one. Second one. Hi"


def test_an_unknown_child_is_told_with_its_siblings(tmp_path: Path):
    work = made(tmp_path, CHUNKS, texts=["First one. Second one. Hi"])
    with pytest.raises(ConfigError, match="no row 'in:1/7' of 'in:1'; its rows there include 'in:1/2'"):
        life_of(work, "in:1/7")


def test_a_row_is_followed_into_the_batch_where_a_shuffle_puts_it(tmp_path: Path):
    work = made(tmp_path, {"name": "mixed", "type": "shuffle", "params": {"seed": 3}}, LOWER, LONG)
    for number, text in enumerate(TEXTS, start=1):
        life = life_of(work, f"in:{number}")
        batch = life.passages[1].batch
        table = work.folder_of("mixed").read(str(batch))
        assert table is not None
        assert text in [row["text"] for row in rows_of(table)]
    batches = [life_of(work, f"in:{number}").passages[1].batch for number in (1, 2, 3, 4)]
    assert batches != ["in_b00000", "in_b00000", "in_b00001", "in_b00001"]


def test_a_row_of_two_branches_is_shown_in_both_and_joined(tmp_path: Path):
    left = {"name": "left", "type": "lowercase", "depends_on": ["source"]}
    right = {**LONG, "name": "right", "depends_on": ["source"]}
    joined = {**LONG, "name": "joined", "depends_on": ["left", "right"]}
    life = life_of(made(tmp_path, left, right, joined), "in:1")
    assert outcomes(life) == [("left", "kept"), ("right", "kept"), ("joined", "kept")]
    assert life.passages[2].changes == []
    dropped = life_of(made(tmp_path, left, right, joined), "in:2")
    assert outcomes(dropped) == [("left", "kept"), ("right", "rejected"), ("joined", "rejected")]


def test_a_row_that_a_query_made_begins_there(tmp_path: Path):
    pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    query = "SELECT lower(text) AS text, count(*) AS times FROM input GROUP BY 1 ORDER BY 1"
    work = made(tmp_path, {"name": "counted", "type": "sql", "params": {"query": query}}, LONG)
    life = life_of(work, "sql:1")
    assert (life.began, outcomes(life)) == ("counted", [("counted", "kept"), ("long", "kept")])
    assert outcomes(life_of(work, "in:1")) == [("counted", "gone")]


def test_a_step_that_is_not_made_yet_is_said(tmp_path: Path):
    work = made(tmp_path, LOWER, LONG)
    work.folder_of("long").remove("in_b00000")
    assert outcomes(life_of(work, "in:1")) == [("lower", "kept"), ("long", "not_made")]


def test_a_child_beyond_the_limit_is_shown_as_far_as_it_was_read(tmp_path: Path):
    work = made(tmp_path, CHUNKS, texts=["First one. Second one. Hi"])
    (life,) = lives_of(work, {"in:1/1": Home("source", "in_b00000")}, ReadLimit(100))
    assert outcomes(life) == [("chunks", "not_read")]


def test_what_is_beyond_the_limit_is_not_read(tmp_path: Path):
    work = made(tmp_path, LOWER, LONG)
    (life,) = lives_of(work, {"in:1": Home("source", "in_b00000")}, ReadLimit(100))
    assert outcomes(life) == [("lower", "not_read")]


def test_a_value_that_a_person_put_right_is_shown_before_the_change(tmp_path: Path):
    work = made(tmp_path, LOWER, LONG)
    step = work.pipeline.step("lower")
    StepEdits.beside(work.folder_of("lower")).commit("in_b00000", BatchEdits({"in:1": {"text": "By HAND"}}))
    list(work.step(step).stream(["in_b00000"]).commit_all(StopFlag()))
    first = life_of(work, "in:1").passages[0]
    assert first.edits == {"text": "By HAND"}
    assert first.changes == [Change("text", "By HAND", "by hand")]
