"""What a root on an object store costs: batches listed and judged, by machines with copies and without.

    python -m benchmarks.object_store [--batches 2000] [--to FILE.json]

An S3 server (moto, one process of Python) on this machine; a source and one step, so the listing has the rows
and records of both, twice as many as there are batches. `judged_s` is the time from a process's first look
until each batch of the step is known to be valid: without any copy and without packs (after a first run that
was killed), without any copy, and with copies of before. `client_cpu_s` and `server_cpu_s` are what the
second of these took. `listed_s` is the listing alone, `commit_ms` a batch and step written with `workers`
threads. `status_wall_s` is a whole `status` on a machine without copies.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psutil
import yaml

from benchmarks.corpus import write_corpus
from benchmarks.processes import cost_of
from dataflow_assets.control import StopFlag, pipeline_lock
from dataflow_assets.io.objects.s3 import S3Store
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.objects.bucket import Bucket
from dataflow_assets_tests.objects.server import moto_server

_WORKERS = 8
_STEPS = [{"name": "lower", "type": "lowercase"}]


def measure(batches: int, folder: Path, endpoint: str) -> dict[str, float]:
    """The figures for one number of batches."""
    bucket = Bucket.new(endpoint)
    os.environ.update(bucket.environment(folder / "maker"))
    file = _pipeline(folder, batches, bucket)
    started = time.monotonic()
    work = PipelineWork(load_pipeline(file))
    list(work.ingest(lambda manifest: None).commit_all(StopFlag()))
    keys = work.known_manifest().batches
    list(work.step(work.pipeline.ordered_steps[0]).stream(keys).commit_all(StopFlag()))
    made_s = time.monotonic() - started
    without_packs = _judged_s(file, folder / "without_packs", batches)
    with pipeline_lock(work.layout.folder):
        pass
    _at(folder / "packing")
    with pipeline_lock(PipelineWork(load_pipeline(file)).layout.folder):
        pass
    started = time.monotonic()
    listed = S3Store(bucket.name).listed("data/")
    listed_s = time.monotonic() - started
    server = psutil.Process().children()[0]
    cpu_before = sum(server.cpu_times()[:2]), time.process_time()
    judged_s = _judged_s(file, folder / "without_copies", batches)
    server_cpu_s, client_cpu_s = (
        sum(server.cpu_times()[:2]) - cpu_before[0],
        time.process_time() - cpu_before[1],
    )
    found = {
        "batches": batches,
        "objects": len(listed),
        "commit_ms": round(made_s / batches / 2 * 1000, 2),
        "listed_s": round(listed_s, 2),
        "judged_without_packs_s": without_packs,
        "judged_s": judged_s,
        "client_cpu_s": round(client_cpu_s, 2),
        "server_cpu_s": round(server_cpu_s, 2),
        "judged_with_copies_s": _judged_s(file, folder / "without_copies", batches),
    }
    _at(folder / "status")
    status = cost_of(
        [sys.executable, "-m", "dataflow_assets", "status", str(file)],
        folder,
        {"PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    return {**found, "status_wall_s": status.wall_s, "status_cpu_s": status.cpu_s}


def _pipeline(folder: Path, batches: int, bucket: Bucket) -> Path:
    write_corpus(folder / "in.jsonl", batches)
    settings = {"batch_rows": 1, "workers": _WORKERS, "profile": False, "root": f"s3://{bucket.name}/data"}
    pipeline = {"name": "many", "source": {"path": "in.jsonl"}, **settings, "steps": _STEPS}
    file = folder / "many.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


def _at(cache: Path) -> None:
    os.environ["DATAFLOW_CACHE"] = str(cache)


def _judged_s(file: Path, cache: Path, batches: int) -> float:
    """From the first look until every batch of the step is judged; copies are told anew what there is."""
    _at(cache)
    moved = cache.with_name(f"{cache.name}_later")
    if cache.exists():
        shutil.move(cache, moved)
        _at(moved)
    started = time.monotonic()
    work = PipelineWork(load_pipeline(file))
    keys = work.known_manifest().batches
    folder = work.folder_of(work.pipeline.ordered_steps[0].name)
    assert len(keys) == batches
    assert all(folder.record(key) is not None for key in keys)
    return round(time.monotonic() - started, 2)


def main() -> None:
    """Measures and prints one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=2000)
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, moto_server() as endpoint:
        found = measure(given.batches, Path(folder), endpoint)
    line = json.dumps(found)
    sys.stdout.write(f"{line}\n")
    if given.to:
        given.to.write_text(f"{line}\n")


if __name__ == "__main__":
    main()
