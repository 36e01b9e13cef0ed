"""A pipeline over rows that are hard to keep as they are, and the command on it."""

import json
from pathlib import Path

from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import walk

ROWS: list[dict[str, object]] = [
    {"code": "007", "text": "<p>one</p>", "n": 3, "meta": {"день": [1.5, None]}},
    {"code": "", "text": '<p>two, "quoted"\nline \x1b[31m</p>', "n": None, "meta": 7},
    {"code": "2024-01-01", "text": "<p>中文 text</p>", "n": -(2**63), "meta": "a"},
    {"code": None, "text": None, "n": 2**63 - 1, "meta": None},
    {"code": "null", "text": "<p>late</p>", "n": 0, "late": 0.5},
]
FILE = """name: odd
source: {path: in.jsonl}
batch_rows: 2
root: data
format: FORMAT
allow_pickle: true
steps:
  - {name: plain, type: strip_html, params: {column: text}}
  - {name: long-enough, type: filter_length, params: {column: text, min_chars: 5}}
"""


def write_pipeline(folder: Path, format: str = "jsonl") -> Path:
    """The pipeline's file with its source and a line that is no JSON; not run yet."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in ROWS]
    (folder / "in.jsonl").write_text("\n".join([*lines, "{torn"]) + "\n", "utf-8")
    file = folder / "odd.yaml"
    file.write_text(FILE.replace("FORMAT", format))
    return file


def made(folder: Path, format: str = "jsonl") -> PipelineWork:
    """The pipeline, run."""
    return walk(load_pipeline(write_pipeline(folder, format)))
