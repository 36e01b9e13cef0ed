"""The small project that is run and broken: 60 rows, one bad line, one failing row, four steps."""

import json
from pathlib import Path

FUNCTIONS = "dataflow_assets_tests.crash.row_functions"
STEPS = """steps:
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: sized, type: map_python, params: {function: "FUNCTIONS:sized", columns: {chars: int64}}WORKERS}
  - {name: long_enough, type: filter_length, params: {column: text, min_chars: 14}}
  - {name: unique, type: drop_duplicates, params: {columns: [text]}}
""".replace("FUNCTIONS", FUNCTIONS)
HEAD = "name: four\nsource: {path: in.jsonl}\nbatch_rows: 10\nroot: data\n"
STEP_NAMES = ("lower", "sized", "long_enough", "unique")


def row(number: int, repeat_after: int = 45) -> dict:
    """A row; from `repeat_after` on the texts of 0 and later come again, some are short."""
    text = number % repeat_after
    return {"n": number, "text": f"<b>Row {text}</b>" + " more" * (text % 5)}


def write_rows(path: Path, rows: list[dict], bad_line_after: int | None = 30) -> None:
    """A JSONL file of these rows, with one line that is no JSON."""
    lines = [json.dumps(each, ensure_ascii=False) for each in rows]
    if bad_line_after is not None and len(lines) > bad_line_after:
        lines.insert(bad_line_after, '{"n": 30, "te')
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_project(
    folder: Path, rows: int = 60, steps: str = STEPS, workers: int | None = None, repeat_after: int = 45
) -> Path:
    """The project in `folder`, which is made; returns the pipeline file."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / "in.jsonl", [row(number, repeat_after) for number in range(rows)])
    file = folder / "four.yaml"
    file.write_text(HEAD + steps.replace("WORKERS", f", workers: {workers}" if workers else ""))
    return file
