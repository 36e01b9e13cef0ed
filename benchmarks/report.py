"""How long the report and the trace of a row take for a pipeline of many rows, and how large the page is.

    python -m benchmarks.report [--rows 1000000] [--folder DIR] [--to FILE.json]

The run is made once, with four cheap steps and batches of 10,000 rows, through the same code as the
command but without Dagster; it is kept in the folder and found there by the next call. Then the
command writes the report and traces three rows, each in a process of its own.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.corpus import write_corpus
from benchmarks.processes import cost_of
from dataflow_assets.control import StopFlag
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork

_STEPS = [
    {"name": "lower", "type": "lowercase"},
    {"name": "tidy", "type": "normalize_whitespace"},
    {"name": "long_enough", "type": "filter_length", "params": {"min_chars": 120}},
    {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}},
]


def make(folder: Path, rows: int) -> Path:
    """The pipeline with all its batches made, and its file."""
    file = folder / "report.yaml"
    if not file.exists():
        write_corpus(folder / "in.jsonl", rows)
        pipeline = {"name": "report", "source": {"path": "in.jsonl"}, "batch_rows": 10_000, "root": "data"}
        file.write_text(yaml.safe_dump({**pipeline, "steps": _STEPS}))
    work = PipelineWork(load_pipeline(file))
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    for step in work.pipeline.ordered_steps:
        if (state := work.state(step)) is not None:
            list(state.commit_all(StopFlag()))
        list(work.step(step).stream(work.known_manifest().batches).commit_all(StopFlag()))
    return file


def measure(folder: Path, rows: int) -> list[dict[str, object]]:
    """The entries for the report and for each traced row."""
    file = make(folder, rows)
    command = [sys.executable, "-m", "dataflow_assets"]
    tree = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    page, card = folder / "report.html", folder / "report.md"
    found: list[dict[str, object]] = []
    cost = cost_of([*command, "report", str(file), "--to", str(page), "--card", str(card)], folder, tree)
    found.append({"what": "report", "rows": rows, **cost.as_json(), "bytes": page.stat().st_size})
    for row_id in ("in:1", f"in:{rows // 2}", f"in:{rows}"):
        cost = cost_of([*command, "trace", str(file), row_id], folder, tree)
        found.append({"what": f"trace {row_id}", "rows": rows, **cost.as_json()})
    return found


def main() -> None:
    """Measures and prints one JSON line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="where the run is kept; default: a temporary one")
    parser.add_argument("--to", type=Path, help="write all results to this JSON file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        results = measure(folder, options.rows)
    for result in results:
        print(json.dumps(result), flush=True)
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
