"""What Dagster costs for each batch and step, and what a run with nothing to do costs.

    python -m benchmarks.overhead [--batches 100 1000] [--write immediate lazy] [--to FILE.json]

Batches of 10 rows go through four row operators with one worker. `dagster_ms` is the CPU time of
the run through Dagster less that of the same commits alone, divided by batches x steps; `commit_ms`
is that of the commits alone, `commit_wall_ms` their time. With `--write lazy` batches are held in memory
and committed together. `idle_wall_s` is a whole `run` process that finds nothing to do.
"""

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.corpus import write_corpus
from benchmarks.processes import cost_of
from dataflow_assets.control import StopFlag
from dataflow_assets.home import open_instance
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.run import run_pipeline

_BATCH_ROWS = 10
_STEPS = [
    {"name": "lower", "type": "lowercase"},
    {"name": "tidy", "type": "normalize_whitespace"},
    {"name": "without_urls", "type": "remove_urls"},
    {"name": "long_enough", "type": "filter_length", "params": {"min_chars": 50}},
]


def measure(batches: int, write: str, folder: Path) -> dict[str, float | str]:
    """The entry for one number of batches and one way to write them."""
    write_corpus(folder / "in.jsonl", batches * _BATCH_ROWS)
    pipeline = {"name": "overhead", "source": {"path": "in.jsonl"}, "batch_rows": _BATCH_ROWS, "workers": 1}
    pipeline["write"] = write
    file = folder / "overhead.yaml"
    file.write_text(yaml.safe_dump({**pipeline, "steps": _STEPS}))
    alone, alone_wall = _commits_alone(
        PipelineWork(load_pipeline(file).with_changes(root=str(folder / "alone")))
    )
    with_dagster, wall = _through_dagster(file, folder)
    steps = batches * len(_STEPS)
    command = [sys.executable, "-m", "dataflow_assets", "run", str(file), "--root", str(folder / "data")]
    idle = cost_of(command, folder, {"PYTHONPATH": str(Path(__file__).parent.parent)})
    return {
        "batches": batches,
        "write": write,
        "steps": len(_STEPS),
        "commit_ms": round(alone / steps * 1000, 2),
        "commit_wall_ms": round(alone_wall / steps * 1000, 2),
        "dagster_ms": round((with_dagster - alone) / steps * 1000, 2),
        "wall_ms": round(wall / steps * 1000, 2),
        "idle_wall_s": idle.wall_s,
        "idle_cpu_s": idle.cpu_s,
    }


def _commits_alone(work: PipelineWork) -> tuple[float, float]:
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    keys = work.known_manifest().batches
    started, wall = time.process_time(), time.monotonic()
    for step in work.pipeline.ordered_steps:
        list(work.stream(step, keys).commit_all(StopFlag()))
    return time.process_time() - started, time.monotonic() - wall


def _through_dagster(file: Path, folder: Path) -> tuple[float, float]:
    os.environ["DAGSTER_HOME"] = str(folder / "home")
    work = PipelineWork(load_pipeline(file).with_changes(root=str(folder / "data")))
    instance = open_instance(folder)
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    started, wall = time.process_time(), time.monotonic()
    run_pipeline(work, instance)
    return time.process_time() - started, time.monotonic() - wall


def main() -> None:
    """Measures and prints one JSON line for each number of batches."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--write", nargs="+", choices=("immediate", "lazy"), default=["immediate"])
    parser.add_argument("--to", type=Path, help="write all results to this JSON file")
    options = parser.parse_args()
    results = []
    for batches, write in itertools.product(options.batches, options.write):
        with tempfile.TemporaryDirectory() as name:
            results.append(measure(batches, write, Path(name)))
        print(json.dumps(results[-1]), flush=True)
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
