"""Rows that would do something if a page, a terminal or a sheet took them for more than data."""

import json
from pathlib import Path

from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.walk import pipeline, walk

PLANTED = "http://planted.invalid"
TEXTS = {
    "image": f'<img src="{PLANTED}/a.png" onerror="alert(1)">',
    "script": f"</script><script src='{PLANTED}/b.js'></script><script>alert(2)</script>",
    "comment": "<!--<script>alert(3)//--></script>",
    "style": f"</style><style>@import '{PLANTED}/c.css'; * {{ display: none }}</style>",
    "attribute": "\" autofocus onfocus='alert(4)' x=\"",
    "link": f"[click](javascript:alert(5)) <a href='javascript:alert(6)'>go</a> ![x]({PLANTED}/d.png)",
    "frame": "<iframe srcdoc='<script>alert(7)</script>'></iframe><svg/onload=alert(8)>",
    "base": f"<base href='{PLANTED}/'><a href=x>x</a>",
    "refresh": f'<meta http-equiv="refresh" content="0;url={PLANTED}/e">',
    "template": "{{ 7 * 7 }} {% for each in ().__class__.__mro__ %}{{ each }}{% endfor %} ${7*7}",
    "pre": "</pre></div></section></main></body></html><h1>gone</h1>",
    "formula": '=HYPERLINK("http://planted.invalid/f","x") @SUM(1) +1 -1 \t=1',
    "escapes": "\x1b[2J\x1b]0;owned\x07 \x9b31m \x00 \x08 \r end",
    "direction": "safe \u202etxt.exe\u202c \u2066inner\u2069 \ufeff mark",
    "separators": "one\u2028two\u2029three",
    "surrogate": "lone \ud800 half",
    "arabic": "مرحبا بالعالم <b>123</b>",
    "long": "<b>x</b>" * 131_072,
    "markdown": "| a | b |\n|---|---|\n# no title\n---\nlicense: evil\n---",
}
COLUMN = '<img src=x onerror="alert(9)">'
_FUNCTIONS = "dataflow_assets_tests.trace.row_functions"


def hostile_work(folder: Path) -> PipelineWork:
    """A made pipeline with each text three times: one row is kept, one dropped, one failed."""
    rows = [
        {
            "name": f"{name}_{fate}",
            "text": text,
            COLUMN: text[:200],
            **({"fail": True} if fate == "fails" else {}),
        }
        for fate in ("stays", "repeats", "fails")
        for name, text in TEXTS.items()
    ]
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) for row in rows] + [f"{{ no row {TEXTS['image']}"]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    steps = (
        {
            "name": "fails",
            "type": "map_python",
            "params": {"function": f"{_FUNCTIONS}:fails_where_told", "columns": {"seen": "bool"}},
            "checks": [{"max_failed_share": 0.1}],
        },
        {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}},
        {"name": "shouted", "type": "map_python", "params": {"function": f"{_FUNCTIONS}:shouted"}},
    )
    return walk(pipeline(folder, folder / "in.jsonl", *steps))
