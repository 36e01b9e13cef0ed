"""Variables come in where they are written, and their values are never told."""

import pickle

import pytest

from dataflow_assets.pipeline.environment import BadReference, Environment, EnvironmentText, redacted
from dataflow_assets_tests.pipeline_files import HEAD, STEP, load, mistakes

CHUNK = "steps:\n- {name: a, type: made_chunk, params: {chunk_size: %s}}\n"
FILLED = {
    "${A}": "one",
    "x${A}y${A}": "xoneyone",
    "${NO:-two}": "two",
    "${NO:-}": "",
    "${EMPTY:-two}": "two",
    "${EMPTY}": "",
    "${A:-two}": "one",
    "$${A}": "${A}",
    "$A": "$A",
    "$$": "$$",
    "${NO:-a b:c}": "a b:c",
    "${NESTED}": "${A}",
}


@pytest.mark.parametrize(("text", "filled"), FILLED.items())
def test_variables_come_in(text, filled):
    assert Environment({"A": "one", "EMPTY": "", "NESTED": "${A}"}).filled(text) == filled


@pytest.mark.parametrize(
    "text", ["${NO}", "${}", "${1}", "${A", "${A-x}", "${A:-${B}}", "${A B}", "${É}", "a ${"]
)
def test_what_is_no_reference_is_refused(text):
    with pytest.raises(BadReference):
        Environment({"A": "one"}).filled(text)


def test_a_missing_variable_is_named_with_its_line_and_hides_what_follows_from_it(tmp_path):
    (line,) = mistakes(tmp_path, HEAD + "batch_rows: ${NO_ROWS}\n" + STEP)
    assert line == (
        "p.yaml:3: batch_rows: the environment variable NO_ROWS is not set; "
        "set it, or write ${NO_ROWS:-default}"
    )


def test_keys_are_left_as_they_are(tmp_path):
    assert "there is no field '${A}'" in mistakes(tmp_path, HEAD + "${A}: 1\n" + STEP)[0]


def test_a_number_of_the_environment_is_one_where_the_field_is(tmp_path, monkeypatch):
    monkeypatch.setenv("SIZE", "12")
    pipeline = load(tmp_path, HEAD + "batch_rows: ${SIZE}\nworkers: ${NO:-3}\n" + CHUNK % "'${SIZE}'")
    assert (pipeline.batch_rows, pipeline.workers) == (12, 3)
    assert pipeline.operator("a").params.chunk_size == 12  # pyright: ignore


def test_a_text_of_digits_stays_text_where_the_field_is_text(tmp_path, monkeypatch):
    monkeypatch.setenv("SUFFIX", "007")
    text = HEAD + "steps:\n- {name: a, type: made_suffix, params: {suffix: '${SUFFIX}'}}\n"
    assert load(tmp_path, text).operator("a").params.suffix == "007"  # pyright: ignore


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "batch_rows: ${KEY}\n" + STEP,
        HEAD + "format: ${KEY}\n" + STEP,
        "name: ${KEY}\nsource: {path: x}\n" + STEP,
        HEAD + "steps:\n- {name: a, type: '${KEY}'}\n",
        HEAD + "steps:\n- {name: '${KEY}', type: made_suffix}\n",
        HEAD + "steps:\n- {name: a, type: made_suffix, depends_on: ['${KEY}']}\n",
        HEAD + "steps:\n- '${KEY}'\n",
        HEAD + "steps:\n- {name: a, type: '${KEY}:x'}\n",
        HEAD + "steps: ['a', ['${KEY}']]\n",
        HEAD + CHUNK % "'${KEY}'",
        HEAD + CHUNK % "'pre-${KEY}'",
        HEAD + CHUNK % "['${KEY}']",
        HEAD + CHUNK % "1, mode: '${KEY}'",
        "name: a\nsource: {path: x, format: '${KEY}'}\n" + STEP,
        "name: a\nsource: {path: x, encoding: '${KEY}'}\n" + STEP,
    ],
)
@pytest.mark.parametrize("value", ["Sk-SECRET", "a'b\"c\nd\\e", "Q"])
def test_no_message_holds_a_value_of_the_environment(tmp_path, monkeypatch, text, value):
    monkeypatch.setenv("KEY", value)
    lines = mistakes(tmp_path, text)
    assert lines and "${KEY}" in "".join(lines)
    told = "".join(lines).replace("${KEY}", "")
    assert value not in told and repr(value)[1:-1] not in told


def test_a_text_of_the_environment_shows_its_template_also_after_pickling():
    text = pickle.loads(pickle.dumps(EnvironmentText("secret", "${KEY}")))
    assert text == "secret" and repr([text]) == "['${KEY}']"


def test_a_short_value_is_hidden_as_a_word_only():
    assert redacted("step 10 has 1 row", {"1": "${N}"}) == "step 10 has ${N} row"


def test_a_secret_parameter_is_hidden_in_a_pipeline_also_when_it_stands_in_the_file(tmp_path):
    params = "params: {input_key: text, output_key: answer, api_key: sk-plain}"
    pipeline = load(tmp_path, HEAD + "steps:\n- {name: a, type: made_answer, " + params + "}\n")
    assert "sk-plain" not in repr(pipeline) + str(pipeline.steps) + str(pipeline.model_dump())
    assert pipeline.secret_values() == {"sk-plain"}
    assert pipeline.redacted("key sk-plain") == "key **********"
