"""Case 40: mistakes in a configuration are found before any work, and say where they are.

Names in the case's files are placeholders; `_mapped` puts ours in.
"""

import re
from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of, table_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline.columns import check_columns
from dataflow_assets_tests.pipeline_files import load, mistakes

CASE = Path(__file__).parent / "cases" / "40_config_mistakes"
NAMES = {
    "dedup_exact": "drop_duplicates",
    "add_suffix": "made_suffix",
    "llm_answer": "made_answer",
    "op: chunk": "op: made_chunk",
    "min_len:": "min_chars:",
    "field:": "column:",
}


def _mapped(name: str) -> str:
    text = (CASE / f"input_{name}.yaml").read_text()
    for theirs, ours in NAMES.items():
        text = text.replace(theirs, ours)
    text = re.sub(r"^input_columns:.*\n", "", text, flags=re.M)
    steps = iter(range(1, 10))
    text = re.sub(r"- op: (\w+)", lambda op: f"- type: {op[1]}\n    name: s{next(steps)}", text)
    return text + "name: case\nsource: {path: in.jsonl}\n"


def test_unknown_operator_is_named_with_its_step_and_a_near_name(tmp_path):
    (line,) = mistakes(tmp_path, _mapped("unknown_op"))
    assert line.startswith("p.yaml:2: step 1 's1' (filter_lenght): ")
    assert "filter_lenght" in line and "filter_length" in line.split("did you mean")[1]


def test_unknown_parameter_is_named_with_its_operator_and_line(tmp_path):
    (line,) = mistakes(tmp_path, _mapped("unknown_param").replace("{min_length", "{min_chars: 1, min_length"))
    assert line.startswith("p.yaml:4: step 1 's1' (filter_length): ")
    assert "'filter_length' has no parameter 'min_length_typo'" in line


def test_duplicate_key_is_named_with_both_lines(tmp_path):
    (line,) = mistakes(tmp_path, _mapped("duplicate_key"))
    assert line == "p.yaml:5: the key 'steps' is there twice, in line 1 and in line 5"


def test_bad_indent_names_step_1_and_its_keys(tmp_path):
    (line,) = mistakes(tmp_path, _mapped("bad_indent"))
    assert line.startswith("p.yaml:2: step 1: ") and "'filter_length', 'min_chars'" in line


def test_the_same_operator_twice_is_valid_and_each_has_its_parameters(tmp_path):
    pipeline = load(tmp_path, _mapped("same_op_twice"))
    table = table_of({"row_id": ["1"], "text": ["x"]}, {"row_id": "string", "text": "string"})
    for step in pipeline.ordered_steps:
        table = pipeline.operator(step).apply(table).kept  # pyright: ignore
    assert rows_of(table) == [{"row_id": "1", "text": "x甲乙"}]
    assert [pipeline.step_number(step) for step in ("s1", "s2")] == [1, 2]


@pytest.mark.parametrize("overlap", ["50", "51", "-1"])
def test_an_overlap_that_loops_for_ever_is_refused(tmp_path, overlap):
    (line,) = mistakes(tmp_path, _mapped("overlap").replace("overlap: 50", f"overlap: {overlap}"))
    expected = "greater than or equal to 0" if overlap == "-1" else "overlap must be < chunk_size"
    assert line.startswith("p.yaml:4: step 1 's1' (made_chunk): ") and expected in line


def test_missing_column_names_step_and_column_before_any_work(tmp_path):
    pipeline = load(tmp_path, _mapped("missing_column"))
    with pytest.raises(ConfigError, match=r"step 1 's1' \(made_answer\): reads the column 'txet'.*'text'"):
        check_columns(pipeline, {"id": "int64", "text": "string"})


def test_an_output_that_would_replace_another_column_is_refused(tmp_path):
    pipeline = load(tmp_path, _mapped("output_clash"))
    with pytest.raises(ConfigError, match=r"step 1 's1' .*writes the column 'id'"):
        check_columns(pipeline, {"id": "int64", "text": "string"})


def test_an_output_may_replace_another_column_where_the_step_says_overwrite(tmp_path):
    pipeline = load(
        tmp_path, _mapped("output_clash").replace("output_key: id", "output_key: id, overwrite: true")
    )
    columns = check_columns(pipeline, {"id": "int64", "text": "string"})
    assert columns["s1"]["id"] == "string"


def test_a_secret_that_is_not_set_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    (line,) = mistakes(tmp_path, _mapped("secret"))
    assert line.startswith("p.yaml:4: step 1 's1' (made_answer): ") and "NO_SUCH_VARIABLE is not set" in line


def test_a_secret_that_is_set_is_in_no_repr_message_or_fingerprint(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_SUCH_VARIABLE", "sk-very-secret")
    pipeline = load(tmp_path, _mapped("secret"))
    operator = pipeline.operator("s1")
    told = [repr(pipeline), str(pipeline), repr(operator.params), operator.fingerprint_of_params()]
    assert "sk-very-secret" not in str(told)
    assert operator.params.api_key.get_secret_value() == "sk-very-secret"  # pyright: ignore


def test_an_empty_file_is_named(tmp_path):
    (line,) = mistakes(tmp_path, (CASE / "input_empty.yaml").read_text())
    assert line == "p.yaml: the file is empty; expected a pipeline: name, source, steps"


def test_a_tab_is_named_with_line_2(tmp_path):
    (line,) = mistakes(tmp_path, (CASE / "input_tab.yaml").read_text())
    assert line == "p.yaml:2: a tab indents this line; YAML is indented with spaces"
