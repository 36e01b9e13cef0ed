"""Rows of a step into batches of 32 rows: this package's loader, `datasets`, and plain loops over JSONL.

    python -m benchmarks.loader [--rows 100000] [--repeat 3] [--to FILE.json]

Each way is a process of its own on the same rows (six columns, about 640 bytes a row) and gives a dict of
lists for each 32 rows. `first` is the first epoch with all that it needs before but the imports, `later` the
least of up to eight epochs after it in the same process: microseconds a row, by CPU of all processes and by
the clock; of `repeat` processes the least. `datasets` turns the files into its own Arrow files first, in a
fresh cache. The loops are `json` and `orjson` over the lines of the step's files. The ratio is ours to the
least of the others, below 1 where ours is less.
"""

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from benchmarks.corpus import write_corpus

_BATCH_ROWS = 32
_LATER_EPOCHS = 8
_MOST_S = 10
_TREE = str(Path(__file__).parent.parent)
Batches = Iterable[Mapping[str, list]]


def made_steps(folder: Path, rows: int) -> int:
    """Runs a pipeline of one step in both formats below `folder`; gives the bytes of the source."""
    size = write_corpus(folder / "in.jsonl", rows)
    for format_ in ("jsonl", "parquet"):
        pipeline = {
            "name": format_,
            "source": {"path": "in.jsonl"},
            "batch_rows": 10_000,
            "format": format_,
            "root": str(folder / "data"),
            "profile": False,
            "steps": [{"name": "kept", "type": "normalize_whitespace"}],
        }
        (folder / f"{format_}.yaml").write_text(yaml.safe_dump(pipeline))
        command = [sys.executable, "-m", "dataflow_assets", "run", f"{format_}.yaml"]
        subprocess.run(command, cwd=folder, env=_environment(folder), check=True, stdout=subprocess.DEVNULL)
    return size


def _environment(folder: Path) -> dict[str, str]:
    ours = {"PYTHONPATH": _TREE, "DAGSTER_HOME": str(folder / "home"), "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **ours, "HF_DATASETS_CACHE": str(folder / f"cache{time.monotonic_ns()}")}


def _files(folder: Path, format_: str) -> list[str]:
    return sorted(map(str, (folder / "data" / format_ / f"{format_}_step1").glob(f"*.{format_}")))


def _columns(rows: list[dict[str, Any]]) -> dict[str, list]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _ours(folder: Path, format_: str, shuffle: bool = False, workers: int = 0) -> Callable[[], Batches]:
    from dataflow_assets.torch import FlowDataLoader, FlowDataset

    rows = FlowDataset(folder / f"{format_}.yaml")
    loader = FlowDataLoader(rows, _BATCH_ROWS, shuffle=shuffle, num_workers=workers)
    return lambda: loader


def _lines(folder: Path, parse: Callable[[bytes], dict[str, Any]]) -> Callable[[], Batches]:
    def batches() -> Iterator[dict[str, list]]:
        for path in _files(folder, "jsonl"):
            with open(path, "rb") as lines:
                while rows := list(map(parse, islice(lines, _BATCH_ROWS))):
                    yield _columns(rows)

    return batches


def _datasets(folder: Path, format_: str, how: str) -> Callable[[], Batches]:
    import datasets

    datasets.disable_progress_bars()
    kind = {"jsonl": "json", "parquet": "parquet"}[format_]
    files = _files(folder, format_)
    rows: Any = datasets.load_dataset(kind, data_files=files, split="train")
    if how == "iter":
        return lambda: rows.iter(_BATCH_ROWS)
    from torch.utils.data import DataLoader

    workers = 2 if how.endswith("2") else 0
    loader = DataLoader(rows, _BATCH_ROWS, shuffle=True, num_workers=workers, collate_fn=_columns)
    return lambda: loader


def _orjson(folder: Path) -> Callable[[], Batches]:
    import orjson

    return _lines(folder, orjson.loads)


ORDERED: dict[str, Callable[[Path], Callable[[], Batches]]] = {
    "ours, jsonl": lambda folder: _ours(folder, "jsonl"),
    "ours, parquet": lambda folder: _ours(folder, "parquet"),
    "loop, json": lambda folder: _lines(folder, json.loads),
    "loop, orjson": _orjson,
    "datasets, jsonl, iter": lambda folder: _datasets(folder, "jsonl", "iter"),
    "datasets, parquet, iter": lambda folder: _datasets(folder, "parquet", "iter"),
}
SHUFFLED: dict[str, Callable[[Path], Callable[[], Batches]]] = {
    "ours, jsonl": lambda folder: _ours(folder, "jsonl", True),
    "ours, parquet": lambda folder: _ours(folder, "parquet", True),
    "ours, jsonl, 2 workers": lambda folder: _ours(folder, "jsonl", True, 2),
    "datasets, jsonl, DataLoader": lambda folder: _datasets(folder, "jsonl", "shuffled"),
    "datasets, jsonl, DataLoader, 2 workers": lambda folder: _datasets(folder, "jsonl", "shuffled 2"),
}
WAYS = {"in order": ORDERED, "shuffled": SHUFFLED}


def _cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _import(way: str) -> None:
    """What a way needs, so that it is not measured."""
    for kind, modules in {
        "ours": ["dataflow_assets.torch", "dataflow_assets.operators.refiners.text"],
        "datasets": ["datasets", "torch.utils.data"],
        "loop": ["orjson"],
    }.items():
        if way.startswith(kind):
            for module in modules:
                importlib.import_module(module)


def measure(kind: str, way: str, folder: Path, rows: int) -> dict[str, float]:
    """The first epoch of a way with what it prepares, and the least of those after it."""
    _import(way)
    figures: dict[str, float] = {}
    cpu, wall = _cpu_s(), time.monotonic()
    began = wall
    batches = WAYS[kind][way](folder)
    for epoch in ("first", *["later"] * _LATER_EPOCHS):
        if epoch == "later" and time.monotonic() - began > _MOST_S and "later_cpu_us" in figures:
            break
        found = sum(len(batch["text"]) for batch in batches())
        assert found == rows, f"{found} rows of {rows}"
        took_cpu, took = _cpu_s() - cpu, time.monotonic() - wall
        cpu, wall = cpu + took_cpu, wall + took
        for name, value in (("cpu_us", took_cpu), ("wall_us", took)):
            figures[f"{epoch}_{name}"] = min(
                figures.get(f"{epoch}_{name}", float("inf")), round(value / rows * 1e6, 3)
            )
    figures["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return figures


def _in_own_process(folder: Path, kind: str, way: str, rows: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.loader", "--one", kind, way, str(folder), str(rows)]
    done = subprocess.run(
        command, cwd=_TREE, env=_environment(folder), check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def compared(rows: int, repeat: int) -> dict[str, Any]:
    """All ways on the same rows, by turns, the least of `repeat` processes each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        entry: dict[str, Any] = {"rows": rows, "bytes": made_steps(folder, rows)}
        for kind, ways in WAYS.items():
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
            for _ in range(repeat):
                for way, found in runs.items():
                    found.append(_in_own_process(folder, kind, way, rows))
            entry[kind] = {
                way: {key: min(run[key] for run in found) for key in found[0]} for way, found in runs.items()
            }
            for way, figures in entry[kind].items():
                print(json.dumps({"rows": rows, "order": kind, "way": way, **figures}), flush=True)
            entry[kind]["ratio"] = _ratios(entry[kind])
            print(json.dumps({"rows": rows, "order": kind, "ratio": entry[kind]["ratio"]}), flush=True)
    return entry


def _ratios(found: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    others = [figures for way, figures in found.items() if not way.startswith("ours")]
    fastest = {name: min(each[name] for each in others) for name in others[0] if name.endswith("_us")}
    return {
        way: {name: round(figures[name] / least, 2) for name, least in fastest.items()}
        for way, figures in found.items()
        if way.startswith("ours")
    }


def main() -> None:
    """Measures and prints one JSON line for each way, and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--to", type=Path, help="write all results to this JSON file")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        kind, way, folder, rows = options.one
        print(json.dumps(measure(kind, way, Path(folder), int(rows))))
        return
    results = [compared(rows, options.repeat) for rows in options.rows]
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
