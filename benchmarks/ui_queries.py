"""How long the Dagster UI's own queries take: a graph of many steps, and a pipeline of many partitions.

    python -m benchmarks.ui_queries [--steps 60] [--partitions 5000] [--to FILE.json]

Runs both pipelines with the command's code, starts `dagster dev`, and opens the asset graph and asset pages
in Debian's Chromium (needs `chromium` and the package `playwright`). Each GraphQL query that the pages
make is timed in the browser, from its sending to the end of the answer. A page is opened twice: the first
time after the start of the server, the second time warm. `slowest_s` has the five slowest queries of each.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import yaml

from dataflow_assets.home import SETTINGS, open_instance
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.run import run_pipeline
from dataflow_assets_tests.dagster_side.webserver import LOCATION, dagster_dev
from dataflow_assets_tests.ui.browser import CHROMIUM

_OPERATORS = [
    {"type": "normalize_whitespace"},
    {"type": "lowercase"},
    {"type": "filter_length", "params": {"min_chars": 2}},
]
_SHOWN = 5
_QUIET_MS = 3_000


def write_pipeline(folder: Path, name: str, steps: int, rows: int, batch_rows: int) -> Path:
    """A pipeline of so many cheap steps, each after the one before, and its source."""
    folder.mkdir()
    lines = (json.dumps({"text": f"Row  {number} of the benchmark"}) + "\n" for number in range(rows))
    (folder / "rows.jsonl").write_text("".join(lines))
    pipeline = {
        "name": name,
        "source": {"path": "rows.jsonl"},
        "batch_rows": batch_rows,
        "workers": 1,
        "steps": [{"name": f"step_{n:02}", **_OPERATORS[n % 3]} for n in range(steps)],
    }
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(pipeline))
    return file


def made(file: Path, root: Path) -> float:
    """Runs a pipeline; the seconds that it took."""
    started = time.monotonic()
    run_pipeline(PipelineWork(load_pipeline(file).with_changes(root=str(root))), open_instance(root))
    return time.monotonic() - started


def pages(steps: int) -> dict[str, str]:
    """The pages that are opened, by what they show."""
    graph = f"/locations/{LOCATION['repositoryLocationName']}/asset-groups/NAME/lineage"
    return {
        f"graph of {steps} steps": graph.replace("NAME", "many_steps"),
        "page of one of them": "/assets/many_steps/step_30?view=overview",
        "lineage of one of them": "/assets/many_steps/step_30?view=lineage&lineageDepth=60",
        "graph with the partitions": graph.replace("NAME", "many_partitions"),
        "page of an asset with the partitions": "/assets/many_partitions/step_01?view=overview",
        "its partitions": "/assets/many_partitions/step_01?view=partitions",
        "its events": "/assets/many_partitions/step_01?view=events",
    }


def timed(url: str, paths: dict[str, str]) -> dict[str, dict[str, object]]:
    """The queries of each page, at its first opening and at the next."""
    from playwright.sync_api import sync_playwright

    found: dict[str, dict[str, object]] = {}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for turn in ("first", "again"):
            for name, path in paths.items():
                queries: list[tuple[float, str]] = []
                page = browser.new_page(viewport={"width": 1500, "height": 1000})
                page.on("requestfinished", lambda request, queries=queries: _note(request, queries))
                page.goto(url + path)
                page.wait_for_timeout(_QUIET_MS)
                page.wait_for_load_state("networkidle")
                queries.sort(reverse=True)
                slowest = {query: round(seconds, 2) for seconds, query in reversed(queries[:_SHOWN])}
                found.setdefault(name, {})[turn] = {"queries": len(queries), "slowest_s": slowest}
                page.close()
        browser.close()
    return found


def _note(request, queries: list[tuple[float, str]]) -> None:
    if request.url.endswith("/graphql") or "/graphql?" in request.url:
        body = request.post_data_json or {}
        timing = request.timing
        seconds = (timing["responseEnd"] - timing["requestStart"]) / 1000
        queries.append((seconds, body.get("operationName") or "?"))


def main() -> None:
    """Measures, prints and writes the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--partitions", type=int, default=5_000)
    parser.add_argument("--to", type=Path, help="write the result to this JSON file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = folder / "root"
        root.mkdir()
        os.environ["DAGSTER_HOME"] = str(folder / "home")
        wide = write_pipeline(folder / "many_steps", "many_steps", options.steps, 30, 10)
        long = write_pipeline(folder / "many_partitions", "many_partitions", 2, options.partitions, 1)
        result: dict[str, object] = {
            "steps": options.steps,
            "partitions": options.partitions,
            "run_of_steps_s": round(made(wide, root), 1),
            "run_of_partitions_s": round(made(long, root), 1),
        }
        environment = {
            **SETTINGS,
            "DAGSTER_HOME": str(folder / "home"),
            "DATAFLOW_PIPELINES": f"{wide.parent}:{long.parent}",
            "DATAFLOW_ROOT": str(root),
        }
        with dagster_dev(folder, **environment) as server:
            result["pages"] = timed(server.url.removesuffix("/graphql"), pages(options.steps))
    print(json.dumps(result, indent=2))
    if options.to:
        options.to.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
