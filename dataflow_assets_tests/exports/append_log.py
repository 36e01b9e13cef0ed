"""A pipeline whose source grows, and its rows in one file."""

import csv
import json
from pathlib import Path

from dataflow_assets.exports.append import Grown, append_step
from dataflow_assets.exports.file import export_step
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import walk

PIPELINE = """name: log
source: {path: "day*.jsonl"}
batch_rows: 5
root: data
format: FORMAT
steps:
  - {name: kept, type: map_python, params: {function: "dataflow_assets_tests.walk:nothing_new"}}
"""
Row = dict[str, object]


def day(number: int, rows: int = 12) -> list[Row]:
    """The rows of a day."""
    return [
        {"day": number, "n": n, "text": f'日 {n}, "quoted"\nline', "tags": [n, None]} for n in range(rows)
    ]


def write_day(folder: Path, number: int, rows: list[Row] | None = None) -> None:
    """A file of the source."""
    lines = [json.dumps(row) + "\n" for row in (day(number) if rows is None else rows)]
    (folder / f"day{number}.jsonl").write_text("".join(lines), "utf-8")


def made(folder: Path, *days: int, format: str = "jsonl") -> PipelineWork:
    """The pipeline, run with these days more."""
    folder.mkdir(exist_ok=True)
    (folder / "log.yaml").write_text(PIPELINE.replace("FORMAT", format))
    for number in days:
        write_day(folder, number)
    return walk(load_pipeline(folder / "log.yaml"))


def appended(work: PipelineWork, to: Path) -> Grown:
    """The last step appended."""
    return append_step(work, None, to)


def read(path: Path) -> list[tuple]:
    """Day and number of each row, in the order of the file."""
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as file:
            return [(int(row["day"]), int(row["n"])) for row in csv.DictReader(file)]
    return [(row["day"], row["n"]) for row in map(json.loads, path.read_text("utf-8").splitlines())]


def of_days(*days: int) -> list[tuple]:
    """Day and number of each row of these days."""
    return [(row["day"], row["n"]) for number in days for row in day(number)]


def is_whole_export(work: PipelineWork, path: Path) -> bool:
    """Whether the file has the very bytes of an export at once."""
    whole = path.with_name(f"whole{path.suffix}")
    export_step(work, None, whole)
    return whole.read_bytes() == path.read_bytes()
