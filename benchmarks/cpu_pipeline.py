"""Four steps over JSONL and Parquet, whole processes: this package, and open-dataflow on the same rows.

    python -m benchmarks.cpu_pipeline [--rows 100000 500000] [--peer-python PATH] [--to FILE.json]

Steps: lower case, strip HTML and URLs, at least 100 characters, exact deduplication; every step
is written (here also fsynced, with a commit record, and told to Dagster). `cpu_s` is of all processes.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.corpus import write_corpus
from benchmarks.processes import Cost, cost_of

# What the peer removes with two expressions; `<[^>\n]*>` is its `<.*?>`.
_HTML_OR_URL = r"https?://\S+[\r\n]*|<[^>\n]*>"
_PEER_SCRIPT = Path(__file__).parent / "peers" / "open_dataflow_four.py"


def pipeline_file(folder: Path, source: Path, format_: str, batch_rows: int, html: str) -> Path:
    """Writes the pipeline: `html` is `regex` (the peer's two expressions) or `parser` (our two operators)."""
    cleaning = {
        "regex": [
            {
                "name": "plain",
                "type": "regex_replace",
                "params": {"column": "text", "pattern": _HTML_OR_URL, "replacement": "", "engine": "re2"},
            }
        ],
        "parser": [{"name": "plain", "type": "strip_html"}, {"name": "without_urls", "type": "remove_urls"}],
    }
    steps = [
        {"name": "lower", "type": "lowercase"},
        *cleaning[html],
        {"name": "long_enough", "type": "filter_length", "params": {"min_chars": 100}},
        {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}},
    ]
    pipeline = {
        "name": "four",
        "source": {"path": str(source)},
        "batch_rows": batch_rows,
        "format": format_,
        "steps": steps,
    }
    path = folder / "four.yaml"
    path.write_text(yaml.safe_dump(pipeline, sort_keys=False))
    return path


def ours(source: Path, format_: str, batch_rows: int, workers: int | None, html: str = "regex") -> Cost:
    """The cost of one `run` in a fresh folder, Dagster home included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = pipeline_file(folder, source, format_, batch_rows, html)
        command = [sys.executable, "-m", "dataflow_assets", "run", str(file)]
        command += ["--workers", str(workers)] if workers else []
        package = str(Path(__file__).parent.parent)
        return cost_of(command, folder, {"DAGSTER_HOME": str(folder / "home"), "PYTHONPATH": package})


def theirs(python: str, source: Path, format_: str) -> Cost:
    """The cost of the peer's pipeline in a fresh folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return cost_of([python, str(_PEER_SCRIPT), str(source), str(folder / "cache"), format_], folder)


def measure(rows: int, formats: list[str], batch_rows: int, peer: str | None, repeat: int) -> list[dict]:
    """One entry for each format: the best of `repeat` runs by CPU-seconds, peer and ratio beside it."""
    entries = []
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "in.jsonl"
        size = write_corpus(source, rows)
        for format_ in formats:
            entry: dict = {"rows": rows, "bytes": size, "format": format_, "batch_rows": batch_rows}
            entry["ours"] = _best(lambda f=format_: ours(source, f, batch_rows, 1), repeat)
            entry["ours_parser"] = _best(lambda f=format_: ours(source, f, batch_rows, 1, "parser"), repeat)
            entry["ours_all_cores"] = _best(lambda f=format_: ours(source, f, batch_rows, None), repeat)
            if peer:
                entry["peer"] = _best(lambda f=format_: theirs(peer, source, f), repeat)
                entry["cpu_ratio"] = round(entry["ours"]["cpu_s"] / entry["peer"]["cpu_s"], 3)
                entry["wall_ratio"] = round(entry["ours_all_cores"]["wall_s"] / entry["peer"]["wall_s"], 3)
            print(json.dumps(entry), flush=True)
            entries.append(entry)
    return entries


def _best(run, repeat: int) -> dict[str, float]:
    return min((run() for _ in range(repeat)), key=lambda cost: cost.cpu_s).as_json()


def main() -> None:
    """Measures and prints one JSON line for each row count and format."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 500_000])
    parser.add_argument("--formats", nargs="+", default=["jsonl", "parquet"])
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--peer-python", help="interpreter of an environment with open-dataflow 1.0.13")
    parser.add_argument("--to", type=Path, help="write all results to this JSON file")
    options = parser.parse_args()
    peer = shutil.which(options.peer_python) if options.peer_python else None
    results = [
        entry
        for rows in options.rows
        for entry in measure(rows, options.formats, options.batch_rows, peer, options.repeat)
    ]
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
