"""`to_messages` writes the three forms that training takes."""

import pytest

from dataflow_assets.batch import rows_of, table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.conversion.to_messages import ToMessages
from dataflow_assets.operators.registry import build_operator

SCHEMA = {"row_id": "string", "question": "string", "answer": "string", "lang": "string"}
ROW = {"row_id": ["q:1"], "question": ["问？"], "answer": ["答。"], "lang": ["zh"]}
FORMS = {
    "messages": {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "问？"},
            {"role": "assistant", "content": "答。"},
        ]
    },
    "sharegpt": {
        "conversations": [
            {"from": "system", "value": "S"},
            {"from": "human", "value": "问？"},
            {"from": "gpt", "value": "答。"},
        ]
    },
    "alpaca": {"instruction": "S\n\n问？", "input": "", "output": "答。"},
}


def operator(**params: object) -> ToMessages:
    made = build_operator("to_messages", params)
    assert isinstance(made, ToMessages)
    return made


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_its_columns_and_what_is_kept(form: str) -> None:
    table = table_of(ROW, SCHEMA)  # pyright: ignore[reportArgumentType]
    made = operator(format=form, system="S", keep=["lang"])
    outcome = made.apply(table)
    check_law(made, table, outcome, "test")
    assert rows_of(outcome.kept) == [{"row_id": "q:1", "lang": "zh", **FORMS[form]}]


@pytest.mark.parametrize("form", FORMS)
def test_half_a_surrogate_pair_fails_its_row_alone(form: str) -> None:
    schema = {**SCHEMA, "answer": "json"}
    values = {"row_id": ["a", "b"], "question": ["?", "?"], "answer": ["\ud800", "yes"], "lang": ["en", "en"]}
    outcome = operator(format=form).apply(table_of(values, schema))  # pyright: ignore[reportArgumentType]
    assert outcome.kept["row_id"].to_pylist() == ["b"] and outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["WrongType"]


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_a_row_without_a_text_fails(answer: str | None) -> None:
    table = table_of({**ROW, "answer": [answer]}, SCHEMA)  # pyright: ignore[reportArgumentType]
    outcome = operator().apply(table)
    assert outcome.kept.num_rows == 0 and outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["MissingValue"]


@pytest.mark.parametrize("system", ["", " \n"])
def test_a_blank_system_message_is_refused_at_load(system: str) -> None:
    with pytest.raises(ConfigError, match="'system': it is blank; leave it out"):
        build_operator("to_messages", {"system": system})
