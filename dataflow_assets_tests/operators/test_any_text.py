"""Every operator on text survives every text."""

import pytest
import yaml

from dataflow_assets.batch import schema_of
from dataflow_assets.operators import Operator, RowOperator, TextFilter, build_operator
from dataflow_assets.operators.registry import operators
from dataflow_assets_tests.operators.sample_tables import typed_table

PARAMS = {
    "lowercase": {},
    "normalize_whitespace": {},
    "fix_unicode": {},
    "strip_html": {},
    "remove_urls": {},
    "regex_replace": {"pattern": "[0-9]+", "replacement": "#"},
    "filter_regex": {"pattern": r"\w"},
    "filter_length": {"min_chars": 1, "max_words": 5},
    "filter_gopher_quality": {},
    "filter_gopher_repetition": {},
    "filter_fineweb": {},
    "filter_c4": {},
}
ODD_TEXTS = {
    "empty": "",
    "space": " \n\t",
    "long line": "x" * 1_000_000,
    "long run of spaces": " " * 1_000_000,
    "unclosed tags": "<" * 200_000,
    "punctuation": "!?.,;:。！？…—()[]{}<>\"'&#\\$^*+|",
    "emoji": "👨‍👩‍👧‍👦🏳️‍🌈🇩🇪👍🏽",
    "right to left": "שלום \u202eעולם\u202c مرحبا",
    "combining": "e\u0301\u0302\u0303" * 50,
    "nul": "a\x00b",
    "private use": "\ue000\U0010ffff",
    "chinese": "如果没有空格，怎么数词？",
}


@pytest.fixture(params=PARAMS)
def operator(request: pytest.FixtureRequest) -> RowOperator:
    built = build_operator(request.param, PARAMS[request.param])
    assert isinstance(built, RowOperator)
    return built


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_no_text_fails_and_no_row_is_lost(operator: RowOperator, text: str):
    outcome = operator.apply(typed_table("string", [text, "after"]))
    assert outcome.failed is None
    assert outcome.kept.num_rows + (outcome.rejected.num_rows if outcome.rejected else 0) == 2


@pytest.mark.parametrize("kind", ["string", "json"])
def test_a_table_without_rows_stays_one(operator: RowOperator, kind: str):
    rows = typed_table(kind, [])
    outcome = operator.apply(rows)
    assert (outcome.kept.num_rows, outcome.rejected, outcome.failed) == (0, None, None)
    expected = rows.schema.names
    assert outcome.kept.schema.names == expected


def test_a_table_with_nulls_only_fails_row_by_row(operator: RowOperator):
    outcome = operator.apply(typed_table("string", [None, None]))
    assert outcome.kept.num_rows == 0
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["MissingValue"] * 2


def test_a_lone_surrogate_fails_its_row_or_is_repaired(operator: RowOperator):
    outcome = operator.apply(typed_table("json", ["good 1", "bad \ud800"]))
    if operator.name == "fix_unicode":
        assert outcome.kept["text"].to_pylist() == ["good 1", "bad \ufffd"]
    else:
        assert outcome.failed is not None
        assert outcome.failed["row_id"].to_pylist() == ["r1"]
        assert "fix_unicode" in outcome.failed["error_message"][0].as_py()


def test_a_slice_of_a_table_gives_what_the_table_gives(operator: RowOperator):
    rows = typed_table("string", ["<b>A</b>  http://a.b 1", "two 22 words", "", "中文 www.c.cn 3"] * 2)
    whole, part = operator.apply(rows), operator.apply(rows.slice(3, 4))
    wanted = set(rows.slice(3, 4)["row_id"].to_pylist())
    expected = [row for row in whole.kept.to_pylist() if row["row_id"] in wanted]
    assert part.kept.to_pylist() == expected


def test_the_schema_that_is_promised_is_the_schema_that_comes(operator: RowOperator):
    for kind in ("string", "json"):
        rows = typed_table(kind, ["a", "b 1"])
        promised = operator.output_schema(schema_of(rows))
        assert schema_of(operator.apply(rows).kept) == promised


SHIPPED = {name: cls for name, cls in operators().items() if cls.__module__.startswith("dataflow_assets.")}


@pytest.mark.parametrize("cls", SHIPPED.values(), ids=list(SHIPPED))
def test_every_operator_says_what_it_does(cls: type[Operator]):
    assert cls.__doc__
    assert len(cls.__doc__.splitlines()[0]) < 110
    assert cls.version
    assert all(field.description for field in cls.Params.model_fields.values())


@pytest.mark.parametrize("name", operators())
def test_the_example_of_an_operator_is_a_step_that_loads(name: str):
    _, found, example = (operators()[name].__doc__ or "").partition("Example:")
    for step in yaml.safe_load(example) if found else ():
        assert step["type"] == name
        if name != "map_python":
            assert build_operator(name, step.get("params", {})).name == name


def test_filters_leave_the_kept_rows_as_they_were(operator: RowOperator):
    rows = typed_table("string", ["one 1", "two 2"])
    if isinstance(operator, TextFilter):
        assert operator.apply(rows).kept == rows
