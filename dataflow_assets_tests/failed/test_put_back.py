"""Putting back: edited rows are tried again, and the edits stay whatever is run later."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError, CorruptFile, RunError
from dataflow_assets.failed_queue.edits import fitting
from dataflow_assets.failed_queue.rows_file import read_rows
from dataflow_assets_tests.failed.project import (
    ANSWERED,
    FILE,
    IN_THREE,
    LOWER,
    SHORT,
    UNIQUE,
    Queue,
)
from dataflow_assets_tests.resume.runs import edit

LONG = "x" * 21


def with_long_rows(queue: Queue, *after: str, head: str = "batch_rows: 4") -> Queue:
    """Rows 2 and 5 are too long for the step."""
    ill = queue.of("ill", SHORT, *after, head=head)
    lines = (ill.folder / "in.jsonl").read_text().splitlines()
    for number in (2, 5):
        lines[number] = json.dumps({**json.loads(lines[number]), "q": LONG})
    (ill.folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    ill.run()
    ill.calls()
    return ill


def answers(queue: Queue) -> dict[int, str]:
    return {row["id"]: row["answer"] for row in queue.stored(1)}


def test_an_edited_row_comes_to_its_place_and_is_asked_alone(queue: Queue) -> None:
    ill = with_long_rows(queue, LOWER)
    (retried,) = ill.put_back({"row_id": "in:3", "q": "short"})
    assert (retried.tried, retried.done) == (1, 1)
    assert ill.calls() == {2: 1}
    assert [row["id"] for row in ill.stored(2)] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert ill.stored(2)[2]["q"] == "short" and ill.stored(2)[2]["answer"] == "SHORT"
    assert ill.generations(2) == [2, 1, 1]


def test_what_was_exported_can_be_put_back_as_it_is(queue: Queue) -> None:
    ill = with_long_rows(queue)
    rows = [json.loads(line) for line in ill.export().open()]
    assert [(row["row_id"], row["error_class"], row["tags"]) for row in rows] == [
        ("in:3", "ValueError", [2]),
        ("in:6", "ValueError", [5]),
    ]
    ill.put_back(*({**row, "q": "ok"} for row in rows))
    assert (answers(ill)[2], answers(ill)[5]) == ("OK", "OK")
    assert ill.stored(1, "_failed") == []


def test_attempts_count_anew(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.retry()
    ill.put_back({"row_id": "in:3"}, {"row_id": "in:6", "q": "still " + LONG})
    assert [row["attempts"] for row in ill.stored(1, "_failed")] == [1, 1]
    ill.retry()
    assert [row["attempts"] for row in ill.stored(1, "_failed")] == [2, 2]


def test_an_edit_survives_fresh_runs_and_changed_parameters(queue: Queue) -> None:
    ill = with_long_rows(queue, UNIQUE)
    ill.put_back({"row_id": "in:3", "q": "short"})
    ill.run()
    assert ill.calls() == {2: 1}
    edit(ill.folder / FILE, "answer: string}", 'answer: string}, version: "2"')
    ill.run()
    assert answers(ill)[2] == "SHORT" and 5 not in answers(ill)


@pytest.mark.parametrize("head", ["batch_rows: 2", "batch_rows: 5", "batch_rows: null"])
def test_an_edit_goes_with_its_row_into_other_batches(queue: Queue, head: str) -> None:
    ill = with_long_rows(queue)
    ill.put_back({"row_id": "in:3", "q": "short"}, {"row_id": "in:6", "q": "too"})
    edit(ill.folder / FILE, "batch_rows: 4", head)
    ill.run()
    assert (answers(ill)[2], answers(ill)[5]) == ("SHORT", "TOO")
    edit(ill.folder / FILE, head, "batch_rows: 4")
    ill.run()
    assert (answers(ill)[2], answers(ill)[5]) == ("SHORT", "TOO")


def test_dropped_edits_give_the_files_of_a_run_without_them(queue: Queue) -> None:
    ill = with_long_rows(queue, LOWER)
    before = ill.files()
    ill.put_back({"row_id": "in:3", "q": "short"}, {"row_id": "in:6", "q": "other"})
    ill.calls()
    ill.drop()
    assert ill.calls() == {2: 1, 5: 1}
    after = ill.files()
    assert {name: after[name] for name in before} == before
    assert all("_edits" in name for name in after.keys() - before.keys())


def test_split_rows_are_put_back_at_their_place(queue: Queue) -> None:
    ill = queue.at("ill", IN_THREE, LOWER, sick=[5])
    (ill.folder / "sick").write_text("50")
    ill.put_back({"row_id": "in:6", "id": 55}, step="parts")
    rows = [(row["row_id"], row["id"]) for row in ill.stored(2)][14:19]
    assert rows == [("in:5/2", 4), ("in:6/0", 55), ("in:6/1", 55), ("in:6/2", 55), ("in:7/0", 6)]


def test_an_edit_may_make_a_row_fail_again_and_be_edited_again(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back({"row_id": "in:3", "q": "y" * 30, "x": 7})
    assert ill.stored(1, "_failed")[0]["q"] == "y" * 30
    ill.put_back({"row_id": "in:3", "q": "z"})
    assert [(row["q"], row["x"]) for row in ill.stored(1) if row["id"] == 2] == [("z", 7.0)]


MISTAKES = [
    ({"row_id": "in:1", "q": "a"}, "row in:1 did not fail in step 'answered': it is kept"),
    ({"row_id": "in:99", "q": "a"}, "row in:99 is not among the failed rows of step 'answered'"),
    ({"row_id": "in:3", "Q": "a"}, "row in:3, column 'Q': the step reads no such column, only row_id, id, q"),
    ({"row_id": "in:3", "answer": "a"}, "row in:3, column 'answer': the step reads no such column"),
    ({"row_id": "in:3", "q": 7}, "row in:3, column 'q': found int, expected str"),
    ({"row_id": "in:3", "id": True}, "row in:3, column 'id': found bool, expected int"),
    ({"row_id": "in:3", "id": 2**70}, "row in:3, column 'id': found a int that a column of type int64"),
    ({"row_id": "in:3", "q": "\ud800"}, "row in:3, column 'q': found a str that a column of type string"),
    ({"q": "a"}, "row_id is None"),
]


@pytest.mark.parametrize(("row", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_row_that_does_not_fit_is_refused_and_nothing_changed(
    queue: Queue, row: dict, message: str
) -> None:
    ill = with_long_rows(queue)
    before = ill.files()
    with pytest.raises(ConfigError) as error:
        ill.put_back({"row_id": "in:6", "q": "good"}, row)
    assert message in str(error.value)
    assert ill.files() == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no rows"),
        ('{"row_id": "a"}\n{"row_id": "a"}\n', "line 2: row a is there twice"),
        ('{"row_id": "a"}\n\n{"row_id"\n', "line 3: malformed JSON"),
        ("[1]\n", "line 1: not a JSON object"),
    ],
)
def test_a_file_that_holds_no_rows_is_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_rows(tmp_path / "rows.jsonl")


def test_a_number_that_no_float_holds_does_not_fit() -> None:
    with pytest.raises(ValueError, match="a column of type float64 cannot hold"):
        fitting(10**400, "float64")


def test_rows_of_a_step_that_decides_over_all_rows_are_refused(queue: Queue) -> None:
    with pytest.raises(ConfigError, match="decides over all rows"):
        queue.at("ill", ANSWERED, UNIQUE).put_back({"row_id": "in:1"}, step="unique")


def test_what_has_no_edit_cannot_be_dropped(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back({"row_id": "in:3", "q": "short"})
    with pytest.raises(ConfigError, match="row in:6 of step 'answered' has no edit"):
        ill.drop("in:3", "in:6")
    assert answers(ill)[2] == "SHORT"


def test_an_edit_that_does_not_fit_any_more_is_named(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back({"row_id": "in:3", "q": "short", "x": 8.5})
    renamed = "  - {name: renamed, type: rename_columns, params: {columns: {x: y}}}\n"
    text = (ill.folder / FILE).read_text()
    (ill.folder / FILE).write_text(text.replace("steps:\n", f"steps:\n{renamed}"))
    (ill.folder / "data" / "queue" / "queue_step1").rename(ill.folder / "data" / "queue" / "queue_step2")
    with pytest.raises(RunError, match="the edit of column 'x' of row in:3 does not fit"):
        ill.run()


def test_a_torn_edit_is_not_ignored(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back({"row_id": "in:3", "q": "short"})
    (ill.folder / "data" / "queue" / "queue_step1" / "_edits" / "in_b00000.jsonl").write_text("{")
    with pytest.raises(CorruptFile, match="the edits of batch 'in_b00000' are lost"):
        ill.run()


def with_lines(queue: Queue, change: Callable[[list[str]], None]) -> None:
    """The source with its lines changed, and a run."""
    lines = (queue.folder / "in.jsonl").read_text().splitlines()
    change(lines)
    (queue.folder / "in.jsonl").write_text("".join(f"{line}\n" for line in lines))
    queue.run()


FIRST = json.dumps({"id": 99, "q": "Qnew", "x": 1.5, "tags": []})
PUT_BACK = ({"row_id": "in:3", "q": "short"}, {"row_id": "in:6", "q": "too"})


def test_an_edit_goes_with_its_row_where_rows_come_and_go_before_it(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back(*PUT_BACK)
    before = answers(ill)
    with_lines(ill, lambda lines: lines.insert(0, FIRST))
    assert answers(ill) == {**before, 99: "QNEW"}
    with_lines(ill, lambda lines: lines.__delitem__(slice(0, 2)))
    assert answers(ill) == {id: answer for id, answer in before.items() if id}


def test_edits_of_rows_that_take_each_others_ids_change_places(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back(*PUT_BACK)
    before = answers(ill)
    with_lines(ill, list.reverse)
    assert answers(ill) == before
    with_lines(ill, lambda lines: lines.__delitem__(slice(0, 3)))
    assert answers(ill) == {id: answer for id, answer in before.items() if id < 9}


def test_an_edit_whose_row_became_another_one_is_named_until_it_is_dropped(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back(*PUT_BACK)
    with pytest.raises(RunError, match="the edit of row in:3 does not fit what the source has"):
        with_lines(ill, lambda lines: lines.__setitem__(2, FIRST))
    with pytest.raises(RunError, match="the edit of row in:3"):
        ill.run()
    ill.drop("in:3")
    ill.run()
    assert (answers(ill)[99], answers(ill)[5]) == ("QNEW", "TOO")


def test_a_column_that_comes_later_does_not_part_an_edit_from_its_row(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back(*PUT_BACK)
    with_lines(ill, lambda lines: lines.append(json.dumps({"id": 12, "q": "Q", "x": "now a text", "y": 1})))
    assert (answers(ill)[2], answers(ill)[5]) == ("SHORT", "TOO")


def test_an_edit_of_an_older_version_goes_by_the_row_id_alone(queue: Queue) -> None:
    ill = with_long_rows(queue)
    ill.put_back(*PUT_BACK)
    edits = ill.work.step(ill.work.pipeline.step("answered")).edits
    for key in edits.keys():  # noqa: SIM118  it is no dict
        edits.commit(key, replace(edits.of(key), origins={}))
    with_lines(ill, lambda lines: lines.insert(0, FIRST))
    assert answers(ill)[1] == "SHORT" and 2 not in answers(ill)
