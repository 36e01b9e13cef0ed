"""A pipeline whose last step is exported, and what the table shall hold then."""

import json
from collections.abc import Sequence
from pathlib import Path

from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.clickhouse_server.process import ClickHouse
from dataflow_assets_tests.walk import UNCHANGED, pipeline, rows, walk

Row = dict[str, object]


def numbered(count: int) -> list[Row]:
    """Rows of five columns, one of them JSON."""
    return [
        {"n": n, "text": f"row {n} 中", "even": n % 2 == 0, "half": n / 2, "j": [n]} for n in range(count)
    ]


def made(folder: Path, source: Sequence[Row], batch_rows: int | None = 10) -> PipelineWork:
    """The pipeline over these rows, run."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in source]
    (folder / "in.jsonl").write_text("".join(lines), "utf-8")
    return walk(pipeline(folder, folder / "in.jsonl", UNCHANGED, batch_rows=batch_rows))


def is_in(server: ClickHouse, table: str, work: PipelineWork) -> bool:
    """Whether the table holds exactly the rows of the step, by plain SELECT and with FINAL."""
    columns = list(rows(work, "kept")[0])
    selected = ", ".join(f"`{column}`" for column in columns)
    wanted = sorted(tuple(_stored(value) for value in row.values()) for row in rows(work, "kept"))
    found = [
        sorted(server.ask(f"SELECT {selected} FROM {table} {final}"), key=lambda row: row[0])
        for final in ("", "FINAL")
    ]
    return found == [wanted, wanted]


def _stored(value: object) -> object:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value
