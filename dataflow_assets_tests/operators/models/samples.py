"""Real texts of many lengths, and what an operator makes of them in chunks of any size."""

from collections.abc import Mapping
from importlib.resources import files

import orjson
import pyarrow as pa

from dataflow_assets.operators import RowOperator, build_operator
from dataflow_assets_tests.operators.sample_tables import table

CHUNKS = [1, 3, 1000]


def real_texts(count: int = 24) -> list[str]:
    """English and Chinese pages of the shipped sample, cut to lengths from one character on."""
    data = (files("dataflow_assets") / "pipelines" / "data" / "text_clean_sample.jsonl").read_bytes()
    texts = [orjson.loads(line)["text"] for line in data.splitlines()]
    usable = [text for text in texts if isinstance(text, str) and len(text) > 40]
    return [usable[row % len(usable)][: 2 + row * row] for row in range(1, count + 1)][::-1]


def instructions_and_answers(count: int = 24) -> pa.Table:
    """Pairs of real texts: the begin of one as the instruction, another one as its answer."""
    texts = real_texts(count)
    return table(instruction=[text[:60] for text in reversed(texts)], answer=texts)


def by_chunks(name: str, params: Mapping[str, object], rows: pa.Table, chunk_rows: int) -> pa.Table:
    """The kept rows of one operator that gets the table in chunks."""
    operator = build_operator(name, params)
    assert isinstance(operator, RowOperator)
    starts = range(0, rows.num_rows, chunk_rows)
    kept = pa.concat_tables([operator.apply(rows.slice(start, chunk_rows)).kept for start in starts])
    assert kept["row_id"] == rows["row_id"]
    return kept
