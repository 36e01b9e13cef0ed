"""Peak memory and rate of reading one large Parquet file as a source, beside `datasets` streaming.

Run with `python benchmarks/source_memory.py [--megabytes N] [--row-group-rows N]`. Each way is a process
of its own; the file has random text, so that it is as large on disk as in memory. Prints a table, writes
JSON beside it with `--json`. Ways: `path` and `hf` are whole runs of the command's source step without the
other steps; `datasets` is `load_dataset(…, streaming=True)` alone, its rows counted and thrown away.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS = ("path", "hf", "datasets")
_ROWS_A_STEP = 20_000


def write_parquet(path: Path, megabytes: int, row_group_rows: int) -> int:
    """A file of about that size; gives its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    dice, rows = random.Random(7), 0
    words = [f"{dice.getrandbits(60):x}" for _ in range(100_000)]
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    held: list[pa.Table] = []
    with pq.ParquetWriter(path, schema) as writer:
        while path.stat().st_size < megabytes * 1e6:
            ids = range(rows, rows + _ROWS_A_STEP)
            held.append(pa.table({"id": ids, "text": [" ".join(dice.choices(words, k=80)) for _ in ids]}))
            rows += _ROWS_A_STEP
            if sum(table.num_rows for table in held) >= row_group_rows:
                writer.write_table(pa.concat_tables(held), row_group_size=row_group_rows)
                held = []
        if held:
            writer.write_table(pa.concat_tables(held), row_group_size=row_group_rows)
    return rows


def read(way: str, folder: Path) -> int:
    """Reads the file in this way; gives the rows."""
    if way == "datasets":
        from datasets import load_dataset

        stream = load_dataset(str(folder / "set"), split="train", streaming=True).with_format("arrow")
        return sum(table.num_rows for table in stream.iter(batch_size=1000))
    from dataflow_assets.control import StopFlag
    from dataflow_assets.pipeline import Pipeline
    from dataflow_assets.pipeline_work import PipelineWork

    source = {"hf": str(folder / "set")} if way == "hf" else {"path": str(folder / "set/train.parquet")}
    step = {"name": "plain", "type": "strip_html", "params": {"column": "text"}}
    work = PipelineWork(Pipeline(name=way, source=source, root=str(folder / "data"), steps=[step]))
    for _ in work.ingest(lambda manifest: None).commit_all(StopFlag()):
        pass
    return work.known_manifest().rows


def measured(way: str, folder: Path) -> dict[str, object]:
    """Reads in a process of its own: rows, seconds, and the peak of its resident memory in MB."""
    started = time.monotonic()
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hf")}
    command = [sys.executable, __file__, "--child", way, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"way": way, "error": done.stderr.strip().splitlines()[-1:]}
    told = json.loads(done.stdout.splitlines()[-1])
    return {"way": way, **told, "seconds": round(time.monotonic() - started, 1)}


def main() -> None:
    """Writes the file, reads it in each way, prints what that took."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--row-group-rows", type=int, default=1_000_000)
    options.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "set").mkdir()
        rows = write_parquet(folder / "set/train.parquet", asked.megabytes, asked.row_group_rows)
        size = (folder / "set/train.parquet").stat().st_size
        found = [measured(way, folder) for way in asked.ways]
    report = {"bytes": size, "rows": rows, "row_group_rows": asked.row_group_rows, "ways": found}
    if asked.json:
        asked.json.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


def _child(way: str, folder: str) -> None:
    rows = read(way, Path(folder))
    # ru_maxrss would count the parent's memory from before the exec
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    print(json.dumps({"rows": rows, "peak_mb": round(peak)}), flush=True)
    os._exit(0)  # `datasets` leaves threads that abort the interpreter's end


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(*sys.argv[2:])
    main()
