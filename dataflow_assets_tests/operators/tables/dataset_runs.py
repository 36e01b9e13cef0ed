"""Runs a dataset operator over a table that is cut into batches, as a step does."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from dataflow_assets.batch import schema_of, table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.operators import DatasetOperator, Outcome, build_operator
from dataflow_assets_tests.operators.sample_tables import ids


def outcomes(name: str, params: Mapping[str, object], rows: pa.Table, batch_rows: int) -> list[Outcome]:
    """The outcome of each batch; the law of each is checked."""
    operator = build_operator(name, params)
    assert isinstance(operator, DatasetOperator)
    operator.output_schema(schema_of(rows))
    begins = range(0, rows.num_rows, batch_rows)
    batches = [(f"b{begin:05}", rows.slice(begin, batch_rows)) for begin in begins]
    summaries = [(key, operator.summarize(batch)) for key, batch in batches]
    verdicts = dict(operator.decide(batches if operator.regroups else summaries))
    assert list(verdicts) == [key for key, _ in batches]
    found = [operator.apply_verdict(batch, verdicts[key]) for key, batch in batches]
    for (key, batch), outcome in zip(batches, found, strict=True):
        check_law(operator, batch, outcome, key)
    return found


def kept(found: Sequence[Outcome]) -> list[str]:
    """The ids of the kept rows, in order."""
    return [row_id for outcome in found for row_id in ids(outcome.kept)]


def rejected(found: Sequence[Outcome]) -> dict[str, str]:
    """The reasons of the rejected rows by id."""
    tables = [outcome.rejected for outcome in found if outcome.rejected is not None]
    return {row["row_id"]: row["reject_reason"] for table in tables for row in table.to_pylist()}


def numbers(rows: int) -> pa.Table:
    """Rows r0, r1, … with their number, a language, a score with gaps and a JSON value."""
    return table_of(
        {
            "row_id": [f"r{n}" for n in range(rows)],
            "n": list(range(rows)),
            "lang": [("en", "zh", None)[n * n % 3] for n in range(rows)],
            "score": [None if n % 11 == 5 else (n * 7) % 10 / 2 for n in range(rows)],
            "meta": [{"k": [n]} if n % 4 else None for n in range(rows)],
        },
        {"row_id": "string", "n": "int64", "lang": "string", "score": "float64", "meta": "json"},
    )
