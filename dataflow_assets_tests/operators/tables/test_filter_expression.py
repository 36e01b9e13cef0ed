import pytest

from dataflow_assets.batch import schema_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

ROWS = table(
    n=[5, 3, None, 1],
    f=[0.5, None, 2.0, -1.0],
    text=["Hello 中", "", None, "a.b"],
    ok=[True, False, None, True],
    any=["x", 7, None, {"a": 1}],
)


def kept(condition: str, **params: object) -> list[int]:
    """The numbers of the rows that stay; a null drops its row, and nothing fails."""
    outcome = applied("filter_expression", ROWS, {"keep": condition, "on_null": "reject", **params})
    assert outcome.failed is None
    return [int(row_id[1:]) for row_id in ids(outcome.kept)]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("n > 2", [0, 1]),
        ("1 < n <= 3", [1]),
        ("n == 5 or text is null", [0, 2]),
        ("n is not null and not (n == 3)", [0, 3]),
        ("n * 2 - 1 == 9", [0]),
        ("n / 2 == 2.5", [0]),
        ("-n < -2", [0, 1]),
        ("n > f", [0, 3]),
        ("n in [5, 1.0]", [0, 3]),
        ("n not in (5,)", [1, 3]),
        ("f in [2]", [2]),
        ("text in ['', 'a.b']", [1, 3]),
        ("'l' in text", [0]),
        ("'l' not in text", [1, 3]),
        ("contains(text, '.')", [3]),
        ("startswith(lower(text), 'h') or endswith(text, 'b')", [0, 3]),
        ("matches(text, '^[A-Z]')", [0]),
        (r"matches(text, '\d|\.')", [3]),
        ("len(text) == 7", [0]),
        ("len(strip(upper(text))) > 2", [0, 3]),
        ("text >= 'H'", [0, 3]),
        ("ok", [0, 3]),
        ("ok == false", [1]),
        ("abs(f) == 1", [3]),
        ("col('text') == ''", [1]),
        ("true", [0, 1, 2, 3]),
        ("null or true", [0, 1, 2, 3]),
        ("null", []),
    ],
)
def test_a_condition_means_what_it_says(condition: str, rows: list[int]):
    assert kept(condition) == rows


def test_reasons_are_told_apart():
    outcome = applied("filter_expression", ROWS, {"keep": "n > 3", "on_null": "reject", "reason": "small"})
    assert outcome.rejected is not None
    assert outcome.rejected.select(["row_id", "reject_reason"]).to_pylist() == [
        {"row_id": "r1", "reject_reason": "small"},
        {"row_id": "r2", "reject_reason": "condition_null"},
        {"row_id": "r3", "reject_reason": "small"},
    ]


def test_a_null_fails_its_row_unless_it_is_kept():
    failed = applied("filter_expression", ROWS, {"keep": "n > 3"}).failed
    assert failed is not None
    assert failed.select(["row_id", "error_class"]).to_pylist() == [
        {"row_id": "r2", "error_class": "MissingValue"}
    ]
    assert kept("n > 3", on_null="keep") == [0, 2]


@pytest.mark.parametrize(
    ("condition", "failed", "error", "stay"),
    [
        ("any == 'x'", ["r1", "r3"], "WrongType", ["r0"]),
        ("any > 6", ["r0", "r3"], "WrongType", ["r1"]),
        ("10 / (n - 3) > 0", ["r1"], "ArrowInvalid", ["r0"]),
        ("n * 4611686018427387904 > 0", ["r0", "r1"], "ArrowInvalid", ["r3"]),
    ],
)
def test_rows_that_cannot_be_computed_fail_alone(condition: str, failed: list, error: str, stay: list):
    outcome = applied("filter_expression", ROWS, {"keep": condition, "on_null": "reject"})
    assert (ids(outcome.kept), ids(outcome.failed)) == (stay, failed)
    assert outcome.failed is not None
    assert set(outcome.failed["error_class"].to_pylist()) == {error}


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("n +", "invalid syntax"),
        ("n + 1", "'n \\+ 1' is a number, expected a bool"),
        ("__import__('os').system('true')", "there is no function"),
        ("text.upper() == 'X'", "there is no function 'text.upper'"),
        ("(lambda: true)()", "there is no function"),
        ("[n for n in text]", "is not of the language"),
        ("text[0] == 'a'", "is not of the language"),
        ("n ** 9 ** 9 > 1", "is not of the language"),
        ("text == null", "write `is null`"),
        ("text is 'a'", "`is` is for null alone"),
        ("n in []", "a list of texts or numbers"),
        ("n in [1, 'a']", "mixes types"),
        ("len(text, 3) > 1", r"it is called as len\(text\)"),
        ("matches(text, '(')", "is not of RE2"),
        ("matches(text, text)", "a text in quotes"),
        ("n > 99999999999999999999", "more than 64 bits"),
        ("not " * 3000 + "true", "characters"),
        ("(" * 900 + "true" + ")" * 900, "nested"),
        ("n > 1j", "is no text, number"),
    ],
)
def test_what_is_not_of_the_language_is_refused_at_load(condition: str, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("filter_expression", {"keep": condition})


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("n > 'a'", "\"'a'\" is a text, expected a number"),
        ("len(n) > 1", "'n' is a number, expected a text"),
        ("text and ok", "'text' is a text, expected a bool"),
        ("ok < ok", "'ok' has no order"),
        ("'x' in n", "'n' is a number, expected a text"),
    ],
)
def test_types_that_do_not_fit_are_told_when_the_columns_are_known(condition: str, message: str):
    operator = build_operator("filter_expression", {"keep": condition})
    with pytest.raises(ConfigError, match=message):
        operator.output_schema(schema_of(ROWS))


@pytest.mark.parametrize("batch_rows", [1, 2, 4])
def test_a_whole_number_of_json_is_exact_beside_a_fraction(batch_rows: int):
    rows = table(a=[2**53, 0.5, None, 2**53 + 0.0], b=[0, 1, 2, 3])
    condition = {"keep": "a + 1 > 9007199254740992", "on_null": "reject"}
    parts = [rows.slice(begin, batch_rows) for begin in range(0, 4, batch_rows)]
    kept = [applied("filter_expression", part, condition).kept for part in parts]
    assert [row_id for part in kept for row_id in ids(part)] == ["r0"]


def test_it_reads_the_columns_that_it_names():
    operator = build_operator("filter_expression", {"keep": "len(text) > n and col('odd name') is null"})
    assert operator.reads() == ["text", "n", "odd name"]


def test_a_big_integer_is_not_compared_as_a_float():
    rows = table(n=[2**53 + 1])
    assert ids(applied("filter_expression", rows, {"keep": f"n > {2**53}"}).kept) == ["r0"]
    assert ids(applied("filter_expression", rows, {"keep": "n > 0.5"}).failed) == ["r0"]
