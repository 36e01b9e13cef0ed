"""Rows, columns and names are data: they do nothing in a rule, a message, a table or a terminal."""

import json

import pytest

from dataflow_assets_tests.expectations.projects import judged, project_with, results

HOSTILE = [
    "\x1b[31mred\x1b[0m \x07",
    "<script>alert(1)</script>",
    "| a | b |\n|---|---|\n[link](javascript:alert(1)) ![x](http://example.org/x.png)",
    "=cmd|' /C calc'!A0",
    "\u202etxet\u2069 \ufeff",
    "{0.__class__} %s ${HOME}",
    "x" * 1_000_000,
]
COLUMNS = [
    "a b",
    'quo"te',
    "new\nline",
    "text.p95",
    "rows",
    "share(x)",
    "\u202e",
    "__class__",
    "row_id2",
    "中文",
]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_any_name_goes_in_quotes(tmp_path, column):
    name = json.dumps(column, ensure_ascii=False)
    rows = [{column: "one two three four five", "n": place} for place in range(10)]
    rules = [f"{name}.words.max <= 4", f"null({name}) > 0", f"label_conflicts({name}, n) <= 0.5"]
    found = judged(tmp_path, rows, *rules, f"duplicates({name}) < 0.1")
    assert [result.value for result in found] == [5, 0, 1, 0.9]
    assert all(result.message.isprintable() for result in found)


def test_examples_show_rows_as_they_are_and_do_nothing(tmp_path):
    rows = [{"text": text, "n": 1} for text in HOSTILE]
    found = judged(
        tmp_path, rows, "chars.min < 0", "share(n = 1) <= 0", "distinct(text) < 0", "null(text) > 0"
    )
    for result in found:
        assert result.message.isprintable()
        assert len(result.message) < 1000
        assert "\x1b" not in "".join(example.text for example in result.examples)


def test_examples_are_a_table_in_which_markup_is_text(tmp_path):
    project = project_with(tmp_path, [{"text": text} for text in HOSTILE[1:3]], "chars.min < 0")
    project.run()
    key = project.key("looked-at")
    import dagster as dg

    (record,) = project.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(key, "chars_min_max"), limit=1
    )
    assert record.event is not None and record.event.dagster_event is not None
    shown = str(record.event.dagster_event.asset_check_evaluation_data.metadata["examples"].value)
    assert "<script>" not in shown and "](" not in shown
    assert len(shown.splitlines()) == 4


def test_values_of_any_text_are_compared_as_they_are(tmp_path):
    values = [*HOSTILE[:5], "…", "", "long " * 100]
    rows = [{"kind": value} for value in values]
    rules = [f"share(kind = {json.dumps(value)}) > 1" for value in values]
    assert [result.value for result in judged(tmp_path, rows, *rules)] == [1 / 8] * 8


def test_lone_surrogates_in_conversations(tmp_path):
    rows = [{"messages": [{"role": "user", "content": "\ud800 what"}]} for _ in range(3)]
    project = project_with(tmp_path, [{"messages": "x"}], "turns.max < 1", "turn_chars.max < 1")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (project.folder / "data" / "a.jsonl").write_text(lines)
    project.run()
    assert [result.value for result in results(project).values()] == [1, 6]
