"""A step with several parents: rows meet on `row_id`, columns come from where they were changed."""

import json

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets_tests.walk import pipeline, rows, walk

LOWER = {"name": "lower", "type": "lowercase", "depends_on": ["source"]}
TITLED = {
    "name": "titled",
    "type": "lowercase",
    "params": {"column": "title"},
    "depends_on": ["source"],
}
LONG = {"name": "long", "type": "filter_length", "params": {"min_chars": 3}, "depends_on": ["source"]}


def _source(folder, count=6):
    lines = [json.dumps({"text": "T" * number, "title": f"A{number}"}) for number in range(1, count + 1)]
    path = folder / "in.jsonl"
    path.write_text("\n".join(lines))
    return path


def _joined(*parents):
    return {"name": "both", "type": "normalize_whitespace", "depends_on": list(parents)}


def _walk(folder, *steps, **fields):
    return walk(pipeline(folder, _source(folder), *steps, **fields))


@pytest.mark.parametrize("batch_rows", [1, 2, 6, None])
def test_each_column_comes_from_the_branch_that_changed_it(batch_rows, tmp_path):
    work = _walk(tmp_path, LOWER, TITLED, _joined("lower", "titled"), batch_rows=batch_rows)
    assert [(row["text"], row["title"]) for row in rows(work, "both")] == [
        ("t" * number, f"a{number}") for number in range(1, 7)
    ]


def test_a_row_that_a_branch_dropped_is_rejected_with_the_name_of_the_branch(tmp_path):
    work = _walk(tmp_path, LOWER, LONG, _joined("lower", "long"), batch_rows=2)
    rejected = rows(work, "both", "rejected")
    assert [(row["row_id"], row["reject_reason"]) for row in rejected] == [
        ("in:1", "missing_in_long"),
        ("in:2", "missing_in_long"),
    ]


def test_the_law_of_conservation_counts_each_row_of_a_join_once(tmp_path):
    work = _walk(tmp_path, LOWER, LONG, _joined("lower", "long"), batch_rows=4)
    records = [work.folder_of("both").record(key) for key in work.known_manifest().batches]
    assert [(record.rows_in, record.rows_out, record.rejected) for record in records] == [
        (4, 2, {"missing_in_long": 2}),
        (2, 2, {}),
    ]


def test_order_is_that_of_the_first_parent(tmp_path):
    work = _walk(tmp_path, LONG, LOWER, _joined("long", "lower"))
    assert [row["row_id"] for row in rows(work, "both")] == ["in:3", "in:4", "in:5", "in:6"]


def test_a_column_changed_in_both_branches_is_a_conflict_before_any_work(tmp_path):
    tidy = {"name": "tidy", "type": "normalize_whitespace", "depends_on": ["source"]}
    made = pipeline(tmp_path, _source(tmp_path), LOWER, tidy, _joined("lower", "tidy"))
    with pytest.raises(ConfigError, match="'text'"):
        walk(made)
