"""Gopher repetition, Gopher quality and FineWeb in a chain, cold, and datatrove's on the same documents.

A document that one filter drops is not shown to the next, in both. Each measurement is a fresh
process that has seen no text but one short one, with which it loads its dictionaries before the clock
starts; the best of `--repeat`.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dataflow_assets.batch import table_of
from dataflow_assets.operators import RowOperator, build_operator
from dataflow_assets.text.language import Language
from dataflow_assets.text.words import words_of

_CHAIN = ("filter_gopher_repetition", "filter_gopher_quality", "filter_fineweb")
_PEER_SCRIPT = Path(__file__).parent / "peers" / "datatrove_filters.py"
_WARM_UP = "A first text, 第一个C语言的文本。"
_PACKAGE = Path(__file__).parent.parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--language", choices=["en", "zh"], required=True)
    parser.add_argument(
        "--documents", type=Path, required=True, help="JSON Lines with id and text (`benchmarks.real_texts`)"
    )
    parser.add_argument("--batch-rows", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-python", help="interpreter with datatrove[processing] 0.10, spacy and jieba")


def measure(options: argparse.Namespace) -> Iterator[dict]:
    """One entry: documents per core-second of both, the ratio, and whether as many are kept."""
    us = [sys.executable, "-m", "benchmarks.filter_chain", options.language, str(options.documents)]
    entry: dict = {
        "language": options.language,
        "ours": _best([*us, str(options.batch_rows)], options.repeat),
    }
    if options.peer_python:
        peer = [options.peer_python, str(_PEER_SCRIPT), "chain", options.language, str(options.documents)]
        entry["peer"] = _best(peer, options.repeat)
        entry["ratio"] = round(entry["ours"]["documents_per_cpu_s"] / entry["peer"]["documents_per_cpu_s"], 2)
        entry["same_number_kept"] = entry["ours"]["kept"] == entry["peer"]["kept"]
    yield entry


def _best(command: list[str], repeat: int) -> dict:
    runs = (subprocess.run(command, capture_output=True, check=True, cwd=_PACKAGE) for _ in range(repeat))
    best = min((json.loads(run.stdout) for run in runs), key=lambda cost: cost["cpu_s"])
    return {**best, "documents_per_cpu_s": round(best["documents"] / best["cpu_s"])}


def _chain(language: Language, documents: Path, batch_rows: int) -> dict:
    """The CPU-seconds of our three operators over the batches."""
    with open(documents, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    table = table_of(
        {"row_id": [row["id"] for row in rows], "text": [row["text"] for row in rows]},
        {"row_id": "string", "text": "string"},
    )
    # The peer's verdict on Chinese texts in one line, so that both do the same.
    as_the_peer = {"filter_fineweb": {"sentences_from_chars": "off"}}
    operators = [build_operator(name, {"language": language, **as_the_peer.get(name, {})}) for name in _CHAIN]
    words_of(_WARM_UP, language)
    kept = 0
    started = time.process_time()
    for start in range(0, table.num_rows, batch_rows):
        batch = table.slice(start, batch_rows)
        for operator in operators:
            assert isinstance(operator, RowOperator)
            batch = operator.apply(batch).kept
        kept += batch.num_rows
    cpu_s = time.process_time() - started
    return {"documents": len(rows), "kept": kept, "cpu_s": round(cpu_s, 3)}


if __name__ == "__main__":
    print(json.dumps(_chain("zh" if sys.argv[1] == "zh" else "en", Path(sys.argv[2]), int(sys.argv[3]))))
