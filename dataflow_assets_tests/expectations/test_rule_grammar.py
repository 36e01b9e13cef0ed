"""Rules as text: what is read, what is refused and with which words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataflow_assets.pipeline.expectations import ExpectSpec
from dataflow_assets.pipeline.rule_grammar import (
    STATS,
    Conflicts,
    Count,
    Drift,
    File,
    OfColumn,
    Path,
    Rule,
    ShareOf,
    StatOf,
    parse,
)
from dataflow_assets_tests.pipeline_files import load, mistakes

HEAD = "name: p\nsource: {path: in.jsonl}\nsteps:\n  - name: one\n    type: made_suffix\n    expect:\n"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("rows >= 1000", Rule(Count("rows"), ">=", 1000)),
        ("rejected.share<=.5", Rule(Count("rejected"), "<=", 0.5)),
        ("rejected(too_short).share < 1e-3", Rule(Count("rejected", "too_short"), "<", 0.001)),
        ("failed.share == 0", Rule(Count("failed"), "=", 0)),
        ("null(answer) = 0", Rule(OfColumn("null", "answer"), "=", 0)),
        ("duplicates <= 0.01", Rule(OfColumn("duplicates"), "<=", 0.01)),
        ('boilerplate("a b.c") > -1', Rule(OfColumn("boilerplate", "a b.c"), ">", -1)),
        ("tokens.p95 <= 30", Rule(StatOf(Path(("tokens",)), "p95"), "<=", 30)),
        ("答案.chars.mean > 5", Rule(StatOf(Path(("答案", "chars")), "mean"), ">", 5)),
        ('"rows".mean > 5', Rule(StatOf(Path(("rows",)), "mean"), ">", 5)),
        ("share(tokens > 30) <= 0.05", Rule(ShareOf(Path(("tokens",)), ">", 30), "<=", 0.05)),
        ('share(language = "zh") >= 0.9', Rule(ShareOf(Path(("language",)), "=", "zh"), ">=", 0.9)),
        ("label_conflicts(q, a, label) <= 0", Rule(Conflicts(("q", "a"), "label"), "<=", 0)),
        ("psi(tokens, before) <= 0.2", Rule(Drift("psi", Path(("tokens",)), "before"), "<=", 0.2)),
        ("js(language, last_run) <= 0.1", Rule(Drift("js", Path(("language",)), "last_run"), "<=", 0.1)),
        ('js(a.language, "r.json") < 1', Rule(Drift("js", Path(("a", "language")), File("r.json")), "<", 1)),
    ],
)
def test_a_rule_is_read(text, rule):
    assert parse(text) == rule
    assert parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected a value such as rows, tokens.p95 or share(tokens > 30), found the end"),
        ("tokens <= 30", "'tokens' is no value (statistics are mean, min, max, p01"),
        ("tokens.p59 <= 30", "; did you mean 'p"),
        ("shar(tokens > 3) <= 1", "there is no 'shar'(…) (there are: null, distinct"),
        ("shar(tokens > 3) <= 1", "did you mean 'share'?"),
        ("share(tokens) <= 1", "expected one of <=, >=, <, >, = after tokens, found ')' at character 13"),
        ('share(tokens > "a") < 1', "a text is compared with ="),
        ("rejected <= 1", "write rejected.share"),
        ("psi(x, befor) < 1", "did you mean 'before'?"),
        ("tokens.p95 <= many", "expected the limit, a number, found 'many' at character 15"),
        ("tokens.p95 <= 30%", "expected the end of the rule, found '%'"),
        ("tokens.p95 <= 1e999", "beyond what a float can hold"),
        ("a.b.c.p95 < 1", "a measure, or a column and its measure"),
        ("label_conflicts(a) < 1", "at least two columns"),
        ("label_conflicts(a, a) < 1", "names a column twice"),
        ('null("\\ud800") = 0', "is no text as JSON writes it"),
        ("rows" + ">" * 2000, "at most 1000 characters"),
        ("__import__('os').system('x') <= 1", "there is no '__import__'(…)"),
    ],
)
def test_a_mistake_is_told(text, told):
    with pytest.raises(ValueError) as error:
        parse(text)
    assert told in str(error.value)


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
ops = st.sampled_from(["<=", ">=", "<", ">", "="])
paths = st.lists(names, min_size=1, max_size=2).map(lambda found: Path(tuple(found)))
values = st.one_of(
    st.just(Count("rows")),
    st.builds(Count, st.sampled_from(["kept", "failed", "rejected"]), st.none()),
    st.builds(Count, st.just("rejected"), names),
    st.builds(OfColumn, st.sampled_from(["null", "distinct"]), names),
    st.builds(OfColumn, st.sampled_from(["duplicates", "near_duplicates", "boilerplate"]), st.none() | names),
    st.builds(StatOf, paths, st.sampled_from(STATS)),
    st.builds(ShareOf, paths, ops, numbers),
    st.builds(ShareOf, paths, st.just("="), names),
    st.lists(names, min_size=2, max_size=4, unique=True).map(
        lambda found: Conflicts(tuple(found[:-1]), found[-1])
    ),
    st.builds(
        Drift,
        st.sampled_from(["psi", "js"]),
        paths,
        st.sampled_from(["before", "last_run"]) | names.map(File),
    ),
)


@settings(deadline=None)
@given(st.builds(Rule, values, ops, numbers))
def test_every_rule_is_read_as_it_is_written(rule):
    assert parse(str(rule)) == rule


@settings(deadline=None)
@given(st.text(max_size=60) | st.text('share(tokn.)<>=",0129e- psi', max_size=40))
def test_any_text_is_a_rule_or_a_mistake(text):
    try:
        assert parse(str(parse(text))) == parse(text)
    except ValueError as error:
        assert str(error).isprintable()


def test_a_mistake_has_its_line(tmp_path):
    text = HEAD + "      - rows >= 1\n      - tokens <= 30\n"
    (mistake,) = mistakes(tmp_path, text)
    assert mistake.startswith("p.yaml:8: step 1 'one' (made_suffix): expect.1.that: 'tokens' is no value")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("      - {that: rows > 1, severity: fatal}\n", "'error' or 'warn' (found 'fatal')"),
        ("      - {severity: warn}\n", "the field 'expect.0.that' is needed"),
        ("      - {that: rows > 1, each: batch}\n", "there is no field 'expect.0.each'"),
        ("      - 5\n", "expect.0: "),
        ("      - rows > 1\n      - rows >= 2\n", "two rules are called 'rows_min'"),
        (
            "      - {that: rows > 1, name: failed_share}\n    checks: [{max_failed_share: 0.1}]\n",
            "is called 'failed_share', as a check is",
        ),
    ],
)
def test_a_mistake_in_a_rule_s_fields_is_told(tmp_path, rules, told):
    (mistake,) = mistakes(tmp_path, HEAD + rules)
    assert told in mistake


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("tokens.p95 <= 30", "tokens_p95_max"),
        ("tokens.p95 > 30", "tokens_p95_min"),
        ("share(tokens > 30) <= 0.05", "share_tokens_above_30_max"),
        ("null(答案) = 0", "null_is_47c73452"),
        ({"that": "rows > 0", "name": "Turn length anomaly"}, "Turn_length_anomaly"),
        ({"that": "rows > 0", "name": "!"}, "5fbb498e"),
    ],
)
def test_names_are_made_of_the_value_and_the_side(given, name):
    assert ExpectSpec.model_validate(given).check_name == name


def test_a_text_is_a_warning(tmp_path):
    pipeline = load(tmp_path, HEAD + "      - rows > 1\n      - {that: rows < 9, severity: error}\n")
    assert [rule.blocking for rule in pipeline.step("one").expect] == [False, True]
