"""The few rows that a person is shown: values before and after, reasons, nothing that acts."""

import pyarrow as pa
import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.io.samples import Changed, changed_values, counts_table, samples_of
from dataflow_assets.operators.operator import Outcome, RowErrors


def table(texts, ids=None, **columns):
    ids = ids or [f"r{n}" for n in range(len(texts))]
    kinds = {
        name: "float64" if isinstance(values[0], float) else "string" for name, values in columns.items()
    }
    return table_of(
        {"row_id": ids, "text": texts, **columns}, {"row_id": "string", "text": "string", **kinds}
    )


def changes(before, after):
    return [(each.row_id, each.column, each.before, each.after) for each in changed_values(before, after)]


def test_only_values_that_changed_are_shown():
    assert changes(table(["A", "b", "C"]), table(["a", "b", "c"])) == [
        ("r0", "text", "A", "a"),
        ("r2", "text", "C", "c"),
    ]


def test_rows_are_found_where_others_were_dropped_before_them():
    before, after = table(["A", "b", "C"]), table(["c"], ["r2"])
    assert changes(before, after) == [("r2", "text", "C", "c")]


def test_the_parts_of_a_split_row_are_compared_with_it():
    before, after = table(["one two"]), table(["one", "two"], ["r0/0", "r0/1"])
    assert changes(before, after) == [("r0/0", "text", "one two", "one"), ("r0/1", "text", "one two", "two")]


def test_a_new_column_counts_where_it_has_a_value():
    before, after = table(["a", "b"]), table(["a", "b"], found=["x", None])
    assert changed_values(before, after) == [Changed("r0", "found", None, "x", is_new=True)]


@pytest.mark.parametrize(
    ("before", "after"), [(None, "a"), ("a", None), ("", None)], ids=["filled", "emptied", "empty to null"]
)
def test_null_is_a_value_of_its_own(before, after):
    assert changes(table([before]), table([after])) == [("r0", "text", before, after)]


def test_nan_and_null_that_stay_did_not_change():
    before = table(["a", "a"], score=[float("nan"), None])
    assert changed_values(before, before.slice(0)) == []


def test_nan_that_became_null_changed():
    before, after = (table(["a", "b"], score=[1.0, score]) for score in (float("nan"), None))
    assert [each.after for each in changed_values(before, after)] == [None]


def test_five_values_are_shown_at_most():
    texts = [f"Text {n}" for n in range(50)]
    assert len(changed_values(table(texts), table([text.lower() for text in texts]))) == 5


def test_a_row_of_another_batch_has_nothing_before():
    assert changes(table(["a"]), table(["b"], ["other"])) == []


def test_a_column_of_another_type_is_shown():
    before, after = (
        table(["7"]),
        table_of({"row_id": ["r0"], "text": [7]}, {"row_id": "string", "text": "int64"}),
    )
    assert changes(before, after) == [("r0", "text", "7", 7)]


def test_of_long_texts_the_part_that_changed_is_shown():
    start = "same " * 10_000
    shown = samples_of(Outcome(table([f"{start}NEW end"])), table([f"{start}OLD end"])).changed
    assert "OLD end" in shown and "NEW end" in shown
    assert len(shown) < 1_000


def test_spaces_that_a_page_would_not_show_are_visible():
    shown = samples_of(Outcome(table(["a b"])), table([" a   b "])).changed
    assert "␣a␣␣␣b␣" in shown


def test_the_cost_does_not_grow_with_the_batch(monkeypatch):
    texts = ["same"] * 100_000
    before = table(texts, [f"r{n}" for n in range(100_000)])
    after = table([*texts[:-1], "other"], before["row_id"].to_pylist())
    assert changed_values(before, after) == []


def test_examples_come_from_several_reasons():
    rejected = table(["a", "b", "c", "d"], reject_reason=["short", "short", "short", "long"])
    shown = samples_of(Outcome(table([]), rejected)).rejected
    assert shown.splitlines()[0] == r"| reject\_reason | row\_id | text |"
    assert [line.split(" | ")[1] for line in shown.splitlines()[2:]] == ["r0", "r1", "r3"]


def test_failed_rows_show_class_message_and_attempts_first():
    rows = table(["a", "b"])
    failed = RowErrors([1], [ValueError("<b>no</b>")]).failed_rows(rows)
    shown = samples_of(Outcome(rows.slice(0, 1), None, failed)).failed
    assert shown.splitlines()[2] == r"| ValueError | &lt;b&gt;no&lt;/b&gt; | 1 | r1 | b |"


def test_reasons_are_counted_with_their_share():
    assert counts_table({"rare": 1, "often": 30}, 100, "reject_reason").splitlines()[2:] == [
        "| often | 30 | 30.0% |",
        "| rare | 1 | 1.0% |",
    ]


def test_no_rows_show_only_a_header():
    empty = table([])
    assert samples_of(Outcome(empty), empty) == ("| row\\_id | text |\n| --- | --- |", "", "", "")


@pytest.mark.parametrize("address", ["http://a.b/c", "HTTPS://a.b", "www.a.b", "me@a.b", "mailto:me@a.b"])
def test_addresses_do_not_become_links_by_themselves(address):
    shown = samples_of(Outcome(table([f"see {address}"]))).preview
    assert address not in shown
    assert address.replace(".", "") in shown.replace("\u200b", "").replace("\\", "").replace(".", "")


def test_one_long_word_can_be_broken():
    shown = samples_of(Outcome(table(["x" * 100]))).preview
    assert max(map(len, shown.replace("\u200b", " ").split())) <= 40


def test_other_chunks_of_the_same_values_are_the_same():
    whole = table(["a", "b"])
    parts = pa.concat_tables([whole.slice(0, 1), whole.slice(1)])
    assert changed_values(whole, parts) == changed_values(parts, whole) == []
