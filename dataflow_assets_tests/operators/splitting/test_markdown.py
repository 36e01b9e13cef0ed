"""Sections of Markdown and the headings that they stand under."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.batch import rows_of
from dataflow_assets.operators.splitting.markdown import sections
from dataflow_assets_tests.operators.sample_tables import applied, typed_table

TEXT = """Before.

# 手册 #
## Install
Run it. It works.
```sh
# no heading
```
### Deep
Text.
## Use ##
Last.

Underlined
==========
End.
"""


def test_sections_know_their_headings():
    found = [(TEXT[part.start : part.end].split("\n")[0], part.headings) for part in sections(TEXT)]
    assert found == [
        ("Before.", ()),
        ("# 手册 #", ("手册", "Install")),
        ("### Deep", ("手册", "Install", "Deep")),
        ("## Use ##", ("手册", "Use")),
        ("Underlined", ("Underlined",)),
    ]


def test_what_looks_like_a_heading_and_is_none():
    text = "#tag\n    # code\n####### seven\n| a |\n---\n\n- item\n---\n~~~\n# fenced\n\nLine\n===\n"
    assert [part.headings for part in sections(text)] == [()]


def test_a_heading_at_the_end_is_a_section():
    assert [part.headings for part in sections("a\n# One\r\n\r\n## Two")] == [(), ("One", "Two")]


@given(
    st.lists(st.sampled_from(["# A\n", "## B\n", "\n", "text\n", "```\n", "===\n", "---\n", " "])).map(
        "".join
    )
)
def test_sections_are_together_the_text(text: str):
    found = sections(text)
    assert (found[0].start, found[-1].end) == (0, len(text))
    assert all(first.end == second.start for first, second in pairwise(found))


def test_no_chunk_goes_across_a_heading():
    outcome = applied("chunk_text", typed_table("string", [TEXT]), {"markdown": True, "max_chars": 60})
    rows = rows_of(outcome.kept)
    assert [row["headings"] for row in rows] == [
        [],
        ["手册", "Install"],
        ["手册", "Install", "Deep"],
        ["手册", "Use"],
        ["Underlined"],
    ]
    assert "".join(str(row["text"]) for row in rows) == TEXT
    assert rows[1]["text"] == "# 手册 #\n## Install\nRun it. It works.\n```sh\n# no heading\n```\n"
