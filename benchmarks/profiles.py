"""What profiles cost: `text_clean` with them and without, whole processes, two at a time.

    python -m benchmarks.profiles --documents FILE.jsonl [--rows 100000] [--rounds 3]

FILE has a text in `text` on each line. The runs of a pair go at the same time, so that a machine whose
speed changes is as slow for both; give it two cores. Prints one JSON line: CPU-seconds of each run, the
median of the pairs' ratios, and the bytes that the profiles take beside the rows.
"""

import argparse
import json
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import yaml

from benchmarks.processes import Cost, cost_of

_PIPELINE = Path(__file__).parent.parent / "dataflow_assets" / "pipelines" / "text_clean.yaml"


def run_once(source: Path, profiled: bool, workers: int) -> tuple[Cost, int, int]:
    """The cost of a run in a fresh folder, the bytes of its profiles and of its step files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipeline = yaml.safe_load(_PIPELINE.read_text("utf-8"))
        pipeline["source"] = {"path": str(source)}
        pipeline["batch_rows"] = 10_000  # the shipped file has 100, for a sample of some hundred rows
        if not profiled:
            pipeline["profile"] = False
        file = folder / "text_clean.yaml"
        file.write_text(yaml.safe_dump(pipeline, sort_keys=False, allow_unicode=True))
        command = [sys.executable, "-m", "dataflow_assets", "run", str(file), "--workers", str(workers)]
        package = str(Path(__file__).parent.parent)
        cost = cost_of(command, folder, {"DAGSTER_HOME": str(folder / "home"), "PYTHONPATH": package})
        profiles = sum(path.stat().st_size for path in folder.rglob("_profiles/*.profile"))
        steps = sum(path.stat().st_size for path in folder.rglob("*_step*/*.jsonl"))
        return cost, profiles, steps


def measure(options: argparse.Namespace) -> dict:
    """The costs of all rounds."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "in.jsonl"
        with open(options.documents, encoding="utf-8") as lines, open(source, "w", encoding="utf-8") as file:
            file.writelines(islice(lines, options.rows))
        with_profiles, without, ratios, sizes = [], [], [], (0, 0)
        for _ in range(options.rounds):
            with ThreadPoolExecutor(2) as both:
                runs = [
                    both.submit(run_once, source, profiled, options.workers) for profiled in (False, True)
                ]
            (plain, _, _), (cost, *sizes) = (run.result() for run in runs)
            with_profiles.append(cost.cpu_s)
            without.append(plain.cpu_s)
            ratios.append(cost.cpu_s / plain.cpu_s)
        return {
            "rows": options.rows,
            "cpu_s_with": with_profiles,
            "cpu_s_without": without,
            "ratio": round(statistics.median(ratios), 3),
            "profile_bytes": sizes[0],
            "step_bytes": sizes[1],
        }


def main() -> None:
    """Measures and prints one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=Path, required=True, help="JSON Lines with a column `text`")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    print(json.dumps(measure(parser.parse_args())), flush=True)


if __name__ == "__main__":
    main()
