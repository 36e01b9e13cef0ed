"""The 23 steps with which open-dataflow filters pretraining text: this package, and the peer beside it.

    python -m benchmarks.filter_23 --documents FILE.jsonl [--minhash] [--chain] [--peer-python PATH]

FILE has a text in `text` on each line. Both write every step; whole processes are measured, start
included. `--chain` puts the 19 filters into one step (`filter_chain`). Prints one JSON line: the costs and
the ratio of CPU-seconds. `--copies` takes the documents so many times, each time a little different.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.processes import Cost, cost_of

_PEER_SCRIPT = Path(__file__).parent / "peers" / "open_dataflow_filters.py"
# What the peer's refiners remove; `<[^>\n]*>` is its `<.*?>`.
_EMOJI = (
    "[\U0001f600-\U0001f64f\U0001f300-\U0001f5ff\U0001f680-\U0001f6ff\U0001f1e0-\U0001f1ff\u2702-\u27b0]+"
)
_HTML_OR_URL = r"https?://\S+[\r\n]*|<[^>\n]*>"
# The peer compares 5-grams of characters by 128 hashes.
_DUPLICATES = {
    "type": "drop_near_duplicates",
    "params": {"unit": "characters", "n": 5, "threshold": 0.9, "bands": 16, "rows": 8},
}
_FILTERS = [
    "word_count",
    "colon_end",
    "sentence_count",
    "ellipsis_lines",
    "null_content",
    "mean_word_length",
    "symbols_per_word",
    "html_entities",
    "no_punctuation",
    "special_characters",
    "watermark",
    "curly_brackets",
    "capital_words",
    "lorem_ipsum",
    "unique_words",
    "character_count",
    "bullet_lines",
    "javascript_lines",
]


def _removed(pattern: str, replacement: str = "") -> dict:
    params = {"pattern": pattern, "replacement": replacement, "engine": "re2"}
    return {"type": "regex_replace", "params": params}


def pipeline_file(folder: Path, source: Path, blocklist: Path, options: argparse.Namespace) -> Path:
    """Writes the pipeline of the steps that the peer has, in its order."""
    blocked = {"type": "filter_blocklist", "params": {"files": [str(blocklist)], "max_count": 1}}
    filters = [blocked, *({"type": f"filter_{name}"} for name in _FILTERS)]
    if options.chain:
        filters = [{"type": "filter_chain", "params": {"filters": filters}}]
    steps = [
        {"name": "no_emoji", **_removed(_EMOJI)},
        {"name": "no_html_or_urls", **_removed(_HTML_OR_URL)},
        {"name": "single_spaces", **_removed(r"\s+", " ")},
        *([{"name": "unique", **_DUPLICATES}] if options.minhash else []),
        *({"name": f"rule_{place}", **filter_} for place, filter_ in enumerate(filters)),
    ]
    pipeline = {
        "name": "filters",
        "source": {"path": str(source)},
        "batch_rows": options.batch_rows,
        "format": "jsonl",
        "steps": steps,
    }
    path = folder / "filters.yaml"
    path.write_text(yaml.safe_dump(pipeline, sort_keys=False, allow_unicode=True))
    return path


def ours(source: Path, blocklist: Path, workers: int, options: argparse.Namespace) -> Cost:
    """The cost of one `run` in a fresh folder, Dagster home included."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = pipeline_file(folder, source, blocklist, options)
        command = [sys.executable, "-m", "dataflow_assets", "run", str(file), "--workers", str(workers)]
        package = str(Path(__file__).parent.parent)
        return cost_of(command, folder, {"DAGSTER_HOME": str(folder / "home"), "PYTHONPATH": package})


def theirs(python: str, source: Path, blocklist: Path, minhash: bool) -> Cost:
    """The cost of the peer's pipeline in a fresh folder; writes its blocklist."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [python, str(_PEER_SCRIPT), str(source), str(folder / "cache"), str(blocklist)]
        return cost_of([*command, *(["minhash"] if minhash else [])], folder)


def write_documents(documents: Path, to: Path, rows: int | None, copies: int) -> int:
    """Writes the texts alone, `copies` times, each with its number at the end. Returns how many."""
    texts = [json.loads(line)["text"] for line in documents.read_text("utf-8").split("\n") if line][:rows]
    with open(to, "w", encoding="utf-8") as file:
        for copy in range(copies):
            for number, text in enumerate(texts):
                ending = f"\nNumber {number} of copy {copy}." if copy else ""
                file.write(json.dumps({"text": text + ending}, ensure_ascii=False) + "\n")
    return len(texts) * copies


def measure(options: argparse.Namespace) -> dict:
    """The costs of both on the same documents."""
    with tempfile.TemporaryDirectory() as name:
        source, blocklist = Path(name) / "in.jsonl", Path(name) / "blocklist.txt"
        rows = write_documents(options.documents, source, options.rows, options.copies)
        entry: dict = {"rows": rows, "bytes": source.stat().st_size, "minhash": options.minhash}
        blocklist.write_text("viagra\ncasino\n")
        peer = None
        if options.peer_python:
            peer = theirs(options.peer_python, source, blocklist, options.minhash)
            entry["peer"] = peer.as_json()
        for workers in options.workers:
            cost = ours(source, blocklist, workers, options)
            entry[f"ours_{workers}"] = cost.as_json()
            if peer:
                entry[f"cpu_times_{workers}"] = round(peer.cpu_s / cost.cpu_s, 2)
        return entry


def main() -> None:
    """Measures and prints one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=Path, required=True, help="JSON Lines with a column `text`")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--batch-rows", type=int, default=5000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--chain", action="store_true", help="all filters in one step")
    parser.add_argument("--minhash", action="store_true", help="with the step of near-duplicates")
    parser.add_argument("--peer-python", type=shutil.which, help="of open-dataflow 1.0.13")
    print(json.dumps(measure(parser.parse_args())), flush=True)


if __name__ == "__main__":
    main()
