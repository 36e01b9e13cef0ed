"""A small pipeline with all that the UI shows: changed, dropped and failed rows, a check, hostile texts."""

import json
from pathlib import Path

TRAP = "planted.invalid"
HOSTILE = [
    f"<script>alert(1);fetch('http://{TRAP}/script')</script>",
    f"<img src=http://{TRAP}/image.png onerror=alert(2)>",
    f"![picture](http://{TRAP}/markdown.png) [link](javascript:alert(3))",
    f"[click](http://{TRAP}/link) | a | b |\n# heading\n- list",
    "=HYPERLINK(1+1) +1 @SUM(A1) \x1b[31mred\x1b[0m \x07 \u202ertl",
    f"<iframe src='http://{TRAP}/frame'></iframe>&lt;b&gt;`code` **bold** "
    "<a href='javascript:alert(4)'>x</a>",
    f"</td></tr></table><style>@import url(http://{TRAP}/style)</style>$$x$$ ~~gone~~ https://{TRAP}/auto",
]
PIPELINE = """\
name: NAME
description: Reviews of a shop, cleaned.
owners: [team:data, ada@example.org]
source: {path: data}
batch_rows: 40
workers: 1
steps:
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: tidy, type: normalize_whitespace, params: {column: text}}
  - {name: words, type: filter_word_count, params: {column: text, min: 2, max: 200}}
  - name: long-enough
    type: filter_length
    params: {column: text, min_chars: 12}
    checks:
      - {min_keep_rate: 0.99}
      - {column: text, max_null_rate: 0.1}
  - {name: unique, type: drop_duplicates, params: {columns: [text]}}
  - name: scored
    type: map_python
    params: {function: "dataflow_assets_tests.ui.row_functions:count", columns: {words: int64}}
"""
SENTENCES = [
    "The  COAT came on time and fits WELL.",
    "Schnelle Lieferung,  gerne WIEDER.",
    "这件外套质量很好 很 暖和 我 喜欢",
    "المعطف جميل  ومريح جدا",
    "Never again:   two WEEKS late.",
    "ok",
]


def write_shop(folder: Path, rows: int = 120, name: str = "shop") -> Path:
    """The pipeline's file in `folder`, with its source beside it."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    texts = (
        HOSTILE + [f"{SENTENCES[n % len(SENTENCES)]} {n}" for n in range(rows)] + ["x", "bad row, number 7"]
    )
    lines = [json.dumps({"text": text, "stars": n % 5 + 1}) + "\n" for n, text in enumerate(texts)]
    (folder / "data" / "reviews.jsonl").write_text("".join(lines))
    file = folder / f"{name}.yaml"
    file.write_text(PIPELINE.replace("NAME", name))
    return file
