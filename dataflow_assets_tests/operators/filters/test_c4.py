"""`filter_c4`: lines that go, texts that go, and texts that are not English."""

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, typed_table

PROSE = ["The first line is prose[1].", "So is the second one!", "Is the third one?", '"It is," he said."']
PAGE = [*PROSE, "Home", "This line ends in nothing", "And so on...", "We use cookies on this page.", "Go on."]
CHINESE = "如果没有空格，怎么数词？\n第二行"


def test_lines_that_are_no_prose_are_taken_out_and_the_rejected_text_stays_as_it_was():
    rows = typed_table("string", ["\n".join([*PAGE, "The fifth line is here."]), "\n".join(PAGE)])
    outcome = applied("filter_c4", rows)
    prose = "\n".join([*PROSE, "The fifth line is here."]).replace("[1]", "")
    assert outcome.kept["text"].to_pylist() == [prose]
    assert outcome.rejected is not None
    assert outcome.rejected["text"].to_pylist() == ["\n".join(PAGE)]
    assert outcome.rejected["reject_reason"].to_pylist() == ["too_few_sentences"]
    assert outcome.rejected["reject_value"].to_pylist() == [4]


@pytest.mark.parametrize(
    "line, reason",
    [
        ("A line with { in it.", "curly_bracket"),
        ("This is Lorem Ipsum text.", "lorem_ipsum"),
        ("Not { as JavaScript line.", None),
    ],
)
def test_the_first_line_with_a_forbidden_text_drops_the_document(line: str, reason: str | None):
    rows = typed_table("string", ["\n".join([line, *PROSE, "A fifth line of it.", "lorem ipsum"])])
    outcome = applied("filter_c4", rows)
    found = None if outcome.rejected is None else outcome.rejected["reject_reason"][0].as_py()
    assert found == reason


def test_chinese_texts_stay_as_they_are_and_a_chinese_profile_is_refused():
    rows = typed_table("string", [CHINESE])
    assert applied("filter_c4", rows).kept["text"].to_pylist() == [CHINESE]
    measured = applied("filter_c4", rows, {"mode": "annotate"}).kept
    assert measured["c4_sentences"].to_pylist() == [None]
    with pytest.raises(ConfigError, match="no rules for 'zh'"):
        build_operator("filter_c4", {"language": "zh"})


def test_values_that_are_no_text_fail_and_the_others_are_edited():
    rows = typed_table("json", ["\n".join([*PROSE, "A fifth line of it."]), 5, None])
    outcome = applied("filter_c4", rows, {"on_null": "keep"})
    assert (ids(outcome.kept), ids(outcome.failed)) == (["r0", "r2"], ["r1"])
    assert outcome.kept["text"].to_pylist()[1] is None
