"""Recall and precision of `redact_pii` by kind, and its speed on texts of your own.

    python -m benchmarks.pii [TEXTS.jsonl]

The table is the one in `docs/pii.md`. With a file of rows with `text` the speed on them is printed:
documents a CPU-second of one core, the best of three.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from dataflow_assets.batch import table_of
from dataflow_assets.operators import RowOperator, build_operator
from dataflow_assets_tests.operators.refiners.pii_measures import table


def documents_per_cpu_second(texts: Sequence[str]) -> float:
    pa.set_cpu_count(1)
    operator = build_operator("redact_pii", {"counts_column": "found"})
    assert isinstance(operator, RowOperator)
    columns = {"row_id": [str(number) for number in range(len(texts))], "text": texts}
    rows = table_of(columns, {"row_id": "string", "text": "string"})
    seconds = []
    for _ in range(3):
        started = time.process_time()
        operator.apply(rows)
        seconds.append(time.process_time() - started)
    return len(texts) / min(seconds)


def main(arguments: Sequence[str]) -> None:
    print(table())
    for name in arguments:
        lines = Path(name).read_text("utf-8").split("\n")
        texts = [json.loads(line)["text"] for line in lines if line]
        print(f"{name}: {len(texts)} texts, {documents_per_cpu_second(texts):,.0f} a CPU-second")


if __name__ == "__main__":
    main(sys.argv[1:])
