"""What is put in the place of personal data and of patterns, how it is counted, and what is refused."""

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from dataflow_assets.engines.processes import ProcessEngine
from dataflow_assets.engines.worker_pool import WorkerPool
from dataflow_assets.errors import ConfigError
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.operators import RowOperator, build_operator
from dataflow_assets.operators.refiners.pii import names
from dataflow_assets.operators.refiners.pii.replacements import HARMLESS
from dataflow_assets_tests.operators.sample_tables import applied, edited, ids, typed_table

KEY = "an old key of the test"
PSEUDONYM = {"replacement": "pseudonym", "key": KEY}


def test_counts_say_how_often_what_was_replaced():
    rows = typed_table("string", ["a@b.com c@d.com 13800138000", "nothing", "8.8.8.8"])
    kept = applied("redact_pii", rows, {"counts_column": "found"}).kept
    assert kept["found"].to_pylist() == ['{"email":2,"mobile":1}', None, '{"ipv4":1}']
    operator = build_operator("redact_pii", {"counts_column": "found"})
    assert operator.counts(kept) == {"email": 2, "ipv4": 1, "mobile": 1}


def test_counts_stand_beside_their_rows_when_others_have_no_text():
    rows = typed_table("json", [None, "a@b.com", 7, "x"])
    outcome = applied("redact_pii", rows, {"counts_column": "found", "on_null": "keep"})
    assert ids(outcome.kept) == ["r0", "r1", "r3"]
    assert outcome.kept["found"].to_pylist() == [None, '{"email":1}', None]
    assert ids(outcome.failed) == ["r2"]


def test_the_counts_column_is_no_other_column():
    with pytest.raises(ConfigError, match="holds something else"):
        build_operator("redact_pii", {"counts_column": "text"})


def test_a_pseudonym_is_the_same_for_every_spelling_and_in_every_text():
    one, other = edited("redact_pii", ["138-0013-8000, 13900139000", "+86 13800138000"], PSEUDONYM)
    first, second = one.split(", ")
    assert first == other != second
    assert first.startswith("<PHONE_")
    assert len(first) == len("<PHONE_>") + 12


@pytest.mark.parametrize(
    "spellings",
    [
        ["+1 415 555 2671", "415-555-2671", "(415) 555-2671", "+14155552671", "001 415-555-2671"],
        ["010-65529988", "+86 10 65529988", "（010）65529988", "+86 (010) 6552 9988", "0086 10-6552-9988"],
        ["+44 (0)20 7946 0958", "+44 20 7946 0958", "0044 20 7946 0958", "(+44) 020 7946 0958"],
        ["+39 06 1234 5678", "+390612345678", "0039 06 12345678"],
        ["13800138000", "+86 13800138000", "0086 138-0013-8000", "+86 (0)138 001 38000"],
    ],
)  # fmt: skip
def test_all_spellings_of_a_phone_number_have_one_pseudonym(spellings: list[str]):
    redacted = edited("redact_pii", [f"{spelling} 10:00" for spelling in spellings], PSEUDONYM)
    assert len(set(redacted)) == 1
    assert redacted[0].startswith("<PHONE_")


def test_numbers_that_differ_by_their_country_have_two_pseudonyms():
    numbers = [
        "+39 06 1234 5678",
        "+39 6 1234 5678",
        "+44 20 7946 0958",
        "+1 207 946 0958",
        "+86 207 9460958",
    ]
    assert len(set(edited("redact_pii", numbers, PSEUDONYM))) == len(numbers)


def test_another_key_makes_other_pseudonyms():
    old = edited("redact_pii", ["a@b.com"], PSEUDONYM)
    assert old != edited("redact_pii", ["a@b.com"], {**PSEUDONYM, "key": "a new key of the test"})
    assert old == edited("redact_pii", ["A@B.com"], PSEUDONYM)


def test_the_key_is_in_no_fingerprint_and_no_text_of_the_operator():
    operators = [build_operator("redact_pii", {**PSEUDONYM, "key": key}) for key in (KEY, "x" * 20)]
    assert operator_fingerprint(operators[0]) == operator_fingerprint(operators[1])
    assert KEY not in repr(operators[0].params) + json.dumps(operators[0].fingerprint_of_params())
    renamed = build_operator("redact_pii", {**PSEUDONYM, "key_id": "2"})
    assert operator_fingerprint(renamed) != operator_fingerprint(operators[0])


def test_two_steps_with_two_keys_in_one_worker_keep_their_keys():
    rows = typed_table("string", ["a@b.com"])
    engine = ProcessEngine(WorkerPool(1))
    for key in (KEY, "a new key of the test"):
        operator = build_operator("redact_pii", {**PSEUDONYM, "key": key})
        assert isinstance(operator, RowOperator)
        assert engine.run(operator, rows).kept == operator.apply(rows).kept
    engine.close()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"replacement": "pseudonym"}, "needs a key"),
        ({"replacement": "pseudonym", "key": "short"}, "shorter than 16"),
        ({"key": KEY}, "a key is for"),
        ({"kinds": []}, "at least 1 item"),
        ({"kinds": ["email", "email"]}, "named twice"),
        ({"kinds": ["fax"]}, "fax"),
    ],
)
def test_mistakes_are_told_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("redact_pii", params)


def test_harmless_values_rotate_in_a_text_and_begin_anew_in_the_next():
    texts = ["a@x.com b@x.com A@X.com c@x.com d@x.com", "z@x.com"]
    first, second, third = HARMLESS["email"]
    assert edited("redact_pii", texts, {"replacement": "rotate"}) == [
        f"{first} {second} {first} {third} {first}",
        first,
    ]


def test_rotating_twice_changes_nothing_more():
    texts = ["a@x.com b@x.com 13912345678 4111111111111111 110101199003070978"]
    once = edited("redact_pii", texts, {"replacement": "rotate"})
    assert edited("redact_pii", once, {"replacement": "rotate"}) == once


class FakeAnalyzer:
    """What Presidio's AnalyzerEngine does, for one name."""

    def analyze(self, text: str, entities: list[str], language: str) -> list[SimpleNamespace]:
        assert (entities, language) == (["PERSON"], "en")
        if "boom" in text:
            raise ValueError("the model broke")
        start = text.find("Ada")
        return [] if start < 0 else [SimpleNamespace(start=start, end=start + 3)]


@pytest.fixture
def presidio(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    monkeypatch.setattr(names.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(names.PersonNames, "_analyzer", FakeAnalyzer())
    return lambda: None


@pytest.mark.usefixtures("presidio")
def test_names_of_persons_are_replaced_too_and_a_text_that_breaks_fails_alone():
    rows = typed_table("string", ["Ada <ada@x.com>", "boom", "none"])
    outcome = applied("redact_pii", rows, {"kinds": ["email", "person"], "counts_column": "found"})
    assert outcome.kept["text"].to_pylist() == ["<PERSON> <<EMAIL>>", "none"]
    assert outcome.kept["found"].to_pylist() == ['{"email":1,"person":1}', None]
    assert ids(outcome.failed) == ["r1"]


@pytest.mark.parametrize(
    ("missing", "message"),
    [("presidio_analyzer", r"pip install 'dataflow_assets\[pii\]'"), ("en_core_web_sm", "spacy download")],
)
def test_names_without_presidio_are_refused_at_load(
    monkeypatch: pytest.MonkeyPatch, missing: str, message: str
):
    monkeypatch.setattr(names.importlib.util, "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(ConfigError, match=message):
        build_operator("redact_pii", {"kinds": ["person"]})
    assert missing not in sys.modules


CASE_NUMBER = {"name": "case_number", "pattern": r"[(（]\d{4}[)）]\w{2,12}号"}


def test_own_patterns_are_replaced_in_order_and_counted():
    rules = [CASE_NUMBER, {"name": "word", "pattern": "(a+)b", "replacement": r"[\1]"}]
    rows = typed_table("string", ["（2023）京01民终123号 aab ab", "none"])
    kept = applied("regex_redact", rows, {"rules": rules, "counts_column": "found"}).kept
    assert kept["text"].to_pylist() == ["<CASE_NUMBER> [aa] [a]", "none"]
    assert kept["found"].to_pylist() == ['{"case_number":1,"word":2}', None]


def test_a_pattern_that_re2_has_too_finds_the_same():
    rules = [{"name": "digits", "pattern": "[0-9]{4}"}]
    assert edited("regex_redact", ["a1234", "b", "12345"], {"rules": rules}) == [
        "a<DIGITS>",
        "b",
        "<DIGITS>5",
    ]


def test_a_slow_pattern_fails_its_row_alone():
    params = {"rules": [{"name": "slow", "pattern": "(a|aa)+$"}], "timeout_s": 0.05}
    outcome = applied("regex_redact", typed_table("string", ["b", "a" * 5000 + "b"]), params)
    assert ids(outcome.kept) == ["r0"]
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["PatternTimeout"]
    assert "engine" not in outcome.failed["error_message"][0].as_py()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([], "at least 1 item"),
        ([{"name": "a", "pattern": "("}], "no regular expression"),
        ([{"name": "a", "pattern": "x", "replacement": r"\2"}], "does not fit"),
        ([{"name": "a", "pattern": "x"}] * 2, "two rules have one name"),
    ],
)
def test_mistakes_in_rules_are_told_at_load(rules: list, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("regex_redact", {"rules": rules})
