"""The operators on tables survive every text and keep every row."""

import pyarrow as pa
import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.operators import DatasetOperator, RowOperator, build_operator
from dataflow_assets_tests.operators.sample_tables import ids
from dataflow_assets_tests.operators.test_any_text import ODD_TEXTS

FUNCTIONS = "dataflow_assets_tests.operators.batch_functions"
STEPS = {
    "filter_expression": {"keep": "len(strip(text)) > 3 and matches(lower(text), '.')", "on_null": "keep"},
    "merge_columns": {"to": "whole", "template": "<{text}>{row_id}", "on_null": "skip"},
    "map_arrow": {"function": f"{FUNCTIONS}:count_chars", "columns": {"chars": "int64"}},
    "map_pandas": {"function": f"{FUNCTIONS}:frame_chars", "columns": {"chars": "int64"}},
    "sample": {"share": 0.5, "by": "text", "shares": {"": 1.0}},
    "sample_rows": {"rows": 5, "by": "text"},
    "quota": {"by": "text", "max_rows": 1},
    "limit": {"rows": 3},
    "sort_batch": {"by": ["text"]},
    "sort": {"by": ["text"], "descending": True},
    "shuffle": {},
    "sql": {"query": "FROM input ORDER BY text, row_id"},
}
ODD = [*ODD_TEXTS.values(), None, "\ufeffx", "\r\n", "{{}}", "a'b\"c", "\x1b[31m"]
WITHOUT_ORDER = ("sort", "sort_batch")


def odd_table(kind: str, texts: list) -> pa.Table:
    columns = {"row_id": [f"r{n}" for n in range(len(texts))], "text": texts}
    return table_of(columns, {"row_id": "string", "text": kind})  # pyright: ignore[reportArgumentType]


def all_ids(name: str, rows: pa.Table) -> list[str]:
    """Runs the operator under the law; the ids of all rows that it gave, in any part."""
    operator = build_operator(name, STEPS[name])
    if isinstance(operator, DatasetOperator):
        [(_, verdict)] = operator.decide([("b", rows if operator.regroups else operator.summarize(rows))])
        outcome = operator.apply_verdict(rows, verdict)
    else:
        assert isinstance(operator, RowOperator)
        outcome = operator.apply(rows)
    check_law(operator, rows, outcome, name)
    return sorted(row_id for part in outcome for row_id in ids(part))


@pytest.mark.parametrize("name", STEPS)
def test_no_text_is_too_odd(name: str):
    rows = odd_table("string", ODD)
    assert all_ids(name, rows) == sorted(rows["row_id"].to_pylist())


@pytest.mark.parametrize("name", [name for name in STEPS if name not in WITHOUT_ORDER])
def test_values_of_any_type_and_lone_surrogates_are_no_crash(name: str):
    rows = odd_table("json", ["good", "bad \ud800", 7, {"a": ["\udfff"]}, None, True, 1e300])
    assert all_ids(name, rows) == sorted(rows["row_id"].to_pylist())
