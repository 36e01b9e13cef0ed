import re
import time

import pytest
import regex
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets.operators.patterns import re2_pattern
from dataflow_assets_tests.operators.sample_tables import applied, edited, ids, table

ATOMS = [
    "a",
    "b",
    "1",
    "中",
    "é",
    ".",
    "[ab]",
    "[^a]",
    "[a-c1]",
    r"\.",
    r"\n",
    r"\x61",
    r"\u4e2d",
    "^",
    "{",
    "]",
    "-",
]
GLUE = [
    "*",
    "+",
    "?",
    "{2}",
    "{1,}",
    "{,2}",
    "{0,2}",
    "*?",
    "+?",
    "|",
    "(",
    "(?:",
    "(?P<n>",
    ")",
    r"\d",
    "$",
    r"\b",
]
patterns = st.lists(st.sampled_from(ATOMS) | st.sampled_from(GLUE), min_size=1, max_size=8).map("".join)
texts = st.lists(st.text("ab1中é.\n]{-,2", max_size=10), min_size=1, max_size=4)


@pytest.mark.parametrize(
    "pattern",
    ["qu[a-f]", "[0-9]{4,}", "(?:a|b)+c", "^中文", r"\Aa", "a.*?b", r"\[[0-9]\]", "x?y"],
)
def test_re2_takes_patterns_that_mean_the_same(pattern: str):
    assert re2_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\d",
        r"\w",
        r"\s",
        r"[\s]",
        r"\ba",
        "a$",
        r"a\Z",
        "(?=a)",
        "(?<!a)b",
        r"(a)\1",
        "(?i)a",
        "(?i:a)",
        "(?x) a",
        r"\p{Han}",
        "(?m)^a",
        "(a*)*",
        "a{2000}",
        "[[:alpha:]]",
        "(",
        "(?>a)",
        "a++",
        "\ud800",
        "(?(1)a|b)(c)",
        r"\G",
        "(?:foo){e<=1}",
        "(?:foo){1<=e<=2}",
        "[a[:digit:]]",
    ],
)
def test_re2_leaves_the_rest_to_python(pattern: str):
    assert re2_pattern(pattern) is None


def compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, FutureWarning, DeprecationWarning):
        assume(False)
        raise


@given(patterns, texts, st.sampled_from(["", "-", "<中>"]))
@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
def test_by_either_engine_replacing_gives_what_re_gives(pattern: str, texts: list[str], replacement: str):
    expected = [compiled(pattern).sub(replacement, text) for text in texts]
    assert edited("regex_replace", texts, {"pattern": pattern, "replacement": replacement}) == expected


@given(patterns, texts)
@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
def test_by_either_engine_groups_are_those_of_re(pattern: str, texts: list[str]):
    template = "<" + "".join(rf"\{number + 1}." for number in range(compiled(pattern).groups)) + ">"
    expected = [compiled(pattern).sub(template, text) for text in texts]
    assert edited("regex_replace", texts, {"pattern": pattern, "replacement": template}) == expected


@given(patterns, texts)
@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much])
def test_by_either_engine_a_filter_finds_what_re_finds(pattern: str, texts: list[str]):
    rows = [*texts, "x"]
    expected = [text for text in rows if compiled(pattern).search(text)]
    kept = applied("filter_regex", table(text=rows), {"pattern": pattern}).kept
    assert kept["text"].to_pylist() == expected


@pytest.mark.parametrize(
    ("pattern", "replacement", "engine", "expected"),
    [
        ("a*", "-", "auto", "-b-c-"),
        (r"(\w)c", r"\1\g<1>", "auto", "bb"),
        ("(b)(c)", r"\2\1", "auto", "cb"),
        ("(b)(c)", r"\2\1\n", "auto", "cb\n"),
        (r"(b)(\pL)", r"\2\1", "re2", "cb"),
        (r"\p{L}", "L", "python", "LL"),
    ],
)
def test_replacements_may_name_groups(pattern, replacement, engine, expected):
    params = {"pattern": pattern, "replacement": replacement, "engine": engine}
    assert edited("regex_replace", ["bc"], params) == [expected]


@pytest.mark.parametrize("name", ["regex_replace", "filter_regex"])
def test_a_row_that_takes_too_long_fails_alone(name: str):
    hostile = "a" * 5000 + "!"
    params = {"pattern": "^(a|aa)+$", "timeout_s": 0.05}
    began = time.monotonic()
    outcome = applied(name, table(text=["aa", hostile, "a"]), params)
    assert time.monotonic() - began < 2
    assert outcome.failed is not None
    assert ids(outcome.failed) == ["r1"]
    assert ids(outcome.kept) == ["r0", "r2"]
    [message] = outcome.failed["error_message"].to_pylist()
    assert "'^(a|aa)+$'" in message
    assert "0.05 s" in message
    assert outcome.failed["error_class"].to_pylist() == ["PatternTimeout"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pattern": "a("}, "missing )"),
        ({"pattern": "(?=a)", "engine": "re2"}, "invalid perl operator"),
        ({"pattern": "a", "replacement": r"\2"}, "does not fit the pattern"),
        ({"pattern": "(?P<n>a)", "replacement": r"\g<m>"}, "does not fit the pattern"),
        ({"pattern": "a", "replacement": r"\2", "engine": "re2"}, "does not fit the pattern"),
        ({"pattern": "a", "timeout_s": 0.0}, "timeout_s"),
        ({}, "needs the parameter 'pattern'"),
    ],
)
def test_a_wrong_pattern_is_refused_at_load(params: dict[str, object], message: str):
    with pytest.raises(ConfigError, match=regex.escape(message)):
        build_operator("regex_replace", params)


@pytest.mark.parametrize(("pattern", "text"), [("(?:foo){e<=1}", "fxo"), ("[a[:digit:]]", "5")])
def test_what_only_the_regex_module_knows_is_not_left_to_re2(pattern: str, text: str):
    assert ids(applied("filter_regex", table(text=[text]), {"pattern": pattern}).kept) == ["r0"]
    assert edited("regex_replace", [text], {"pattern": pattern, "replacement": "-"}) == ["-"]
    rules = [{"name": "n", "pattern": pattern, "replacement": "-"}]
    assert edited("regex_redact", [text], {"rules": rules}) == ["-"]


def test_rejected_rows_say_whether_the_pattern_matched():
    rows = table(text=["a1", "b"])
    matching = applied("filter_regex", rows, {"pattern": "[0-9]"})
    others = applied("filter_regex", rows, {"pattern": r"\d", "keep": "not_matching"})
    assert (ids(matching.kept), ids(others.kept)) == (["r0"], ["r1"])
    assert matching.rejected is not None and others.rejected is not None
    assert matching.rejected["reject_reason"].to_pylist() == ["pattern_not_matched"]
    assert others.rejected["reject_reason"].to_pylist() == ["pattern_matched"]
