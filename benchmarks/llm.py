"""A step of calls to a server of fixed latency: throughput, client CPU, a run from the ledger; and the peer.

    python -m benchmarks.llm [--rows 5000] [--concurrency 64] [--latency-ms 200] [--peer-python PATH]

The server is the fault server of the tests, without faults, in a process of its own. Ideal is
rows * latency / concurrency. `client_ms` is the CPU of the whole command beyond that of the same
command over a pipeline that asks nobody, by call, ledger included. The run from the ledger is the
same pipeline in another folder with the ledger of the first: no call is sent.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.processes import Cost, cost_of
from dataflow_assets_tests.fault_server import FaultServer

_PEER_SCRIPT = Path(__file__).parent / "peers" / "open_dataflow_llm.py"
_PACKAGE = str(Path(__file__).parent.parent)


def write_rows(path: Path, rows: int) -> None:
    """Questions of about 60 characters, all different."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            text = f"Question {number}: how many sheep are there on hill {number * 7919 % 104729}?"
            file.write(json.dumps({"text": text}) + "\n")


def pipeline_file(folder: Path, url: str | None, options: argparse.Namespace) -> Path:
    """One step that generates an answer a row; without a URL one that lowers the text instead."""
    asks = {
        "name": "answers",
        "type": "generate",
        "params": {"prompt": "{text}", "output_column": "answer", "max_tokens": 64},
    }
    serving = {"type": "openai", "model": "m", "base_url": url, "concurrency": options.concurrency}
    pipeline = {
        "name": "llm",
        "source": {"path": str(folder.parent / "in.jsonl")},
        "batch_rows": options.batch_rows,
        "steps": [asks if url else {"name": "lower", "type": "lowercase"}],
        **({"servings": {"default": serving}, "ledger": str(folder.parent / "ledger.sqlite")} if url else {}),
    }
    path = folder / "llm.yaml"
    path.write_text(yaml.safe_dump(pipeline, sort_keys=False))
    return path


def ours(base: Path, name: str, url: str | None, options: argparse.Namespace) -> tuple[Cost, float]:
    """The cost of a run in a fresh folder, and the seconds from the first to the last batch's record."""
    folder = base / name
    folder.mkdir()
    file = pipeline_file(folder, url, options)
    command = [sys.executable, "-m", "dataflow_assets", "run", str(file)]
    environment = {"DAGSTER_HOME": str(folder / "home"), "PYTHONPATH": _PACKAGE, "OPENAI_API_KEY": ""}
    cost = cost_of(command, folder, environment)
    return cost, _step_seconds(folder / "dataflow_data" / "llm" / "llm_step1" / "_commits")


def _step_seconds(commits: Path) -> float:
    records = [json.loads(path.read_text()) for path in commits.glob("*.json")]
    return max(r["started_at"] + r["seconds"] for r in records) - min(r["started_at"] for r in records)


def theirs(python: str, base: Path, workers: int, url: str) -> Cost:
    """The cost of the peer's serving on the same rows, its answers not stored."""
    folder = base / f"peer{workers}"
    folder.mkdir()
    command = [python, str(_PEER_SCRIPT), str(base / "in.jsonl"), f"{url}/chat/completions", str(workers)]
    return cost_of(command, folder, {"DF_API_KEY": "none", "TQDM_DISABLE": "1"})


def measure(options: argparse.Namespace) -> dict:
    """All figures of one go."""
    ideal = options.rows * options.latency_ms / 1000 / options.concurrency
    result: dict = {"rows": options.rows, "concurrency": options.concurrency, "ideal_s": round(ideal, 2)}
    with tempfile.TemporaryDirectory() as name, FaultServer() as server:
        base = Path(name)
        write_rows(base / "in.jsonl", options.rows)
        server.default(delay_s=options.latency_ms / 1000)
        idle, _ = ours(base, "idle", None, options)
        first, _ = ours(base, "first", server.url, options)
        times = [(one.time, one.time + one.seconds) for one in server.stats().requests]
        span = max(end for _, end in times) - min(start for start, _ in times)
        server.reset()
        cached, step_s = ours(base, "cached", server.url, options)
        result |= {
            "first": first.as_json(),
            "requests": len(times),
            "of_ideal": round(ideal / span, 3),
            "client_ms": round((first.cpu_s - idle.cpu_s) / options.rows * 1000, 3),
            "cached": cached.as_json(),
            "cached_requests": len(server.stats().requests),
            "cached_rows_per_s": round(options.rows / step_s),
        }
        for workers in (10, options.concurrency) if options.peer_python else ():
            server.reset()
            server.default(delay_s=options.latency_ms / 1000)
            peer = theirs(options.peer_python, base, workers, server.url)
            times = [(one.time, one.time + one.seconds) for one in server.stats().requests]
            span = max(end for _, end in times) - min(start for start, _ in times)
            limit = options.rows * options.latency_ms / 1000 / workers
            result[f"peer_{workers}_workers"] = {**peer.as_json(), "of_ideal": round(limit / span, 3)}
    return result


def main() -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency-ms", type=float, default=200)
    parser.add_argument("--batch-rows", type=int, default=500)
    parser.add_argument("--peer-python", help="interpreter of an environment with open-dataflow 1.0.13")
    parser.add_argument("--to", type=Path, help="write the result to this JSON file")
    options = parser.parse_args()
    options.peer_python = shutil.which(options.peer_python) if options.peer_python else None
    result = measure(options)
    text = json.dumps(result, indent=2)
    print(text)
    if options.to:
        options.to.write_text(text + "\n")


if __name__ == "__main__":
    main()
