"""Each mistake in a file gives a line that says where it is and what to do."""

import json
import os

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.io.objects.places import local_folder
from dataflow_assets.pipeline.file import MAX_FILE_BYTES, load_pipeline
from dataflow_assets.pipeline.text import MAX_DEPTH, MAX_NODES
from dataflow_assets_tests.pipeline_files import HEAD, STEP, load, mistakes

TWO = HEAD + "steps:\n  - {name: a, type: made_suffix}\n"
TEXTS = {
    "empty": ("", "p.yaml: the file is empty"),
    "only white space": ("\n  \n", "p.yaml: the file is empty"),
    "only a comment": ("# nothing\n", "p.yaml: the file is empty"),
    "null": ("---\n~\n", "p.yaml: the file is empty"),
    "a list": ("\n- a\n", "p.yaml:2: found a list, expected a mapping"),
    "a text": ("text", "p.yaml:1: found 'text', expected a mapping"),
    "a tab": ("steps:\n\t- a\n", "p.yaml:2: a tab indents this line"),
    "an open bracket": ("name: [a\nb: c\n", "p.yaml:2: this is no YAML"),
    "a control character": ("name: a\nb: \x07\n", r"p.yaml:2: the control character '\x07' is not allowed"),
    "two documents": (TWO + "---\nname: b\n", "p.yaml:5: a second document starts"),
    "a python tag": (TWO + "description: !!python/name:os.system\n", "p.yaml:5: the tag 'tag:yaml.org"),
    "a text tag": (TWO + "description: !!str 12\n", "p.yaml:5: the tag"),
    "an own tag": (TWO + "description: !env HOME\n", "p.yaml:5: the tag '!env' is not read"),
    "a merge key": (TWO + "<<: {format: csv}\n", "p.yaml:5: merge keys (<<) are not read"),
    "a number as a key": (TWO + "12: x\n", "p.yaml:5: the key 12 is no text; quote it"),
    "a list as a key": (TWO + "? [a]\n: x\n", "p.yaml:5: a list or mapping as a key is no text"),
    "equal keys": (TWO + "name: x\n", "p.yaml:5: the key 'name' is there twice, in line 1 and in line 5"),
    "equal inner keys": (
        HEAD + "steps:\n- name: a\n  type: made_suffix\n  type: made_chunk\n",
        "p.yaml:6: the key 'type' is there twice, in line 5 and in line 6",
    ),
    "an unknown alias": (TWO + "description: *x\n", "p.yaml:5: the alias *x stands for nothing"),
    "an alias of itself": (TWO + "description: &x [*x]\n", "p.yaml:5: the alias *x stands for nothing"),
    "a huge number": (TWO + f"batch_rows: {'9' * 5000}\n", "p.yaml:5: a number of 5000 characters"),
    "an endless number": (TWO + "batch_rows: 1e999\n", "p.yaml:5: the number 1e999 is beyond"),
    "a vanishing number": (TWO + "batch_rows: 1e-999\n", "p.yaml:5: the number 1e-999 is beyond"),
    "latin-1": (TWO.encode() + b"description: caf\xe9\n", "p.yaml:5: byte 93 of the file is not UTF-8"),
    "utf-16": (TWO.encode("utf-16"), "p.yaml:1: byte 1 of the file is not UTF-8"),
    "no steps": (HEAD, "p.yaml:1: the field 'steps' is needed"),
    "empty steps": (HEAD + "steps: []\n", "p.yaml:3: steps: list should have at least 1 item"),
    "steps without items": (HEAD + "steps:\n", "p.yaml:3: steps: input should be a valid list (found None)"),
    "steps as a mapping": (HEAD + "steps: {a: {type: x}}\n", "p.yaml:3: steps: input should be a valid list"),
    "no source": ("name: a\n" + STEP, "p.yaml:1: the field 'source' is needed"),
    "no name": ("source: {path: a}\n" + STEP, "p.yaml:1: the field 'name' is needed"),
    "a typo in a field": (TWO + "batchrows: 5\n", "p.yaml:5: there is no field 'batchrows' (there are: name"),
    "a typo in a source": (
        "name: a\nsource:\n  path: x\n  on_badline: fail\n" + STEP,
        "p.yaml:4: there is no field 'source.on_badline' (there are: path",
    ),
    "no path in the source": (
        "name: a\nsource: {}\n" + STEP,
        "p.yaml:2: source: expected `path` (tables, lines) or `files` (documents), found neither",
    ),
    "a text for a number": (
        TWO + "batch_rows: '5'\n",
        "p.yaml:5: batch_rows: input should be a valid integer",
    ),
    "a leading zero": (TWO + "batch_rows: 0123\n", "(found '0123'); unquoted numbers are written like 5"),
    "a hexadecimal": (TWO + "batch_rows: 0x1F\n", "(found '0x1F'); unquoted numbers are written like 5"),
    "an underscore": (TWO + "batch_rows: 10_000\n", "(found '10_000'); unquoted numbers are written like 5"),
    "a fraction of a row": (
        TWO + "batch_rows: 1.5\n",
        "p.yaml:5: batch_rows: input should be a valid integer",
    ),
    "a boolean for a number": (
        TWO + "batch_rows: true\n",
        "p.yaml:5: batch_rows: input should be a valid int",
    ),
    "a yes": (TWO + "allow_pickle: yes\n", "(found 'yes'); the two booleans are written true and false"),
    "a number for a text": (TWO + "description: 12\n", "(found 12); quote it to make it text"),
    "no rows in a batch": (
        TWO + "batch_rows: 0\n",
        "p.yaml:5: batch_rows: input should be greater than or equal",
    ),
    "no workers": (TWO + "workers: 0\n", "p.yaml:5: workers: input should be greater than or equal to 1"),
    "an unknown format": (TWO + "format: xlsx\n", "p.yaml:5: format: input should be 'jsonl', 'json', 'csv'"),
    "pickle without leave": (TWO + "format: pickle\n", "format pickle runs code when it is read"),
    "an empty root": (TWO + "root: ''\n", "p.yaml:5: root: string should have at least 1 character"),
    "a step that is a text": (
        HEAD + "steps:\n- made_suffix\n",
        "p.yaml:4: step 1: found 'made_suffix', expected a mapping",
    ),
    "a step that is empty": (HEAD + "steps:\n-\n", "p.yaml:4: step 1: found None, expected a mapping"),
    "a step without a type": (
        HEAD + "steps:\n- name: a\n",
        "p.yaml:4: step 1 'a': the field 'type' is needed",
    ),
    "a step without a name": (
        HEAD + "steps:\n- type: made_suffix\n",
        "p.yaml:4: step 1 (made_suffix): the field 'name' is needed",
    ),
    "a parameter beside params": (
        HEAD + "steps:\n- {name: a, type: made_suffix, suffix: x}\n",
        "p.yaml:4: step 1 'a' (made_suffix): there is no field 'suffix' (there are: name, type, params",
    ),
    "params as a list": (
        TWO + "  - {name: b, type: made_suffix, params: [a]}\n",
        "params: input should be a valid dict",
    ),
    "two steps of a name": (
        TWO + "  - {name: a, type: made_chunk, params: {chunk_size: 2}}\n",
        "p.yaml:5: step 2 'a' (made_chunk): step 1 has the name 'a' too",
    ),
    "two steps of a name in Dagster": (
        HEAD + "steps:\n- {name: a-b, type: made_suffix}\n- {name: a_b, type: made_suffix}\n",
        "p.yaml:5: step 2 'a_b' (made_suffix): step 1 is called 'a-b', and 'a_b' is the same name to Dagster",
    ),
    "a step called source": (
        HEAD + "steps:\n- {name: source, type: made_suffix}\n",
        "name: 'source' is kept for assets of the package",
    ),
    "a step called like a state": (
        HEAD + "steps:\n- {name: unique_state, type: made_suffix}\n",
        "name: 'unique_state' is kept for assets",
    ),
    "a step called like a state in Dagster": (
        HEAD + "steps:\n- {name: unique-state, type: made_suffix}\n",
        "name: 'unique-state' is kept for assets",
    ),
    "an unknown operator": (
        HEAD + "steps:\n- {name: a, type: made_sufix}\n",
        "there is no operator 'made_sufix'; did you mean",
    ),
    "an unknown module": (
        HEAD + "steps:\n- {name: a, type: 'no_mod:X'}\n",
        "module 'no_mod' of 'no_mod:X' cannot",
    ),
    "a relative module": (HEAD + "steps:\n- {name: a, type: '..x:X'}\n", "'..x:X' is no path to Python code"),
    "no class": (
        HEAD + "steps:\n- {name: a, type: 'json:dumps'}\n",
        "'json:dumps' is a function, expected an Op",
    ),
    "an operator that refuses": (
        HEAD + "steps:\n- {name: a, type: made_refusing}\n",
        "no service at localhost:1",
    ),
    "an operator that crashes": (
        HEAD + "steps:\n- {name: a, type: made_crashing}\n",
        "step 1 'a' (made_crashing): operator 'made_crashing' cannot be made: ZeroDivisionError: by zero",
    ),
    "a missing parameter": (
        HEAD + "steps:\n- name: a\n  type: made_chunk\n  params: {}\n",
        "p.yaml:6: step 1 'a' (made_chunk): operator 'made_chunk' needs the parameter 'chunk_size'",
    ),
    "a text for a numeric parameter": (
        HEAD + "steps:\n- name: a\n  type: made_chunk\n  params:\n    chunk_size: 007\n",
        "p.yaml:7: step 1 'a' (made_chunk): operator 'made_chunk', parameter 'chunk_size': Input should be a "
        "valid integer (found '007'); unquoted numbers are written like 5 or -3",
    ),
    "an unknown parent": (
        TWO + "  - name: bb\n    type: made_suffix\n    depends_on: [aa]\n",
        "p.yaml:7: step 2 'bb' (made_suffix): depends_on: there is no step 'aa' (there are: source, a)",
    ),
    "a parent twice": (TWO + "  - {name: b, type: made_suffix, depends_on: [a, a]}\n", "names 'a' twice"),
    "a parent that is a text": (
        TWO + "  - {name: b, type: made_suffix, depends_on: a}\n",
        "p.yaml:5: step 2 'b' (made_suffix): depends_on: input should be a valid list (found 'a')",
    ),
    "a step behind itself": (
        HEAD + "steps:\n- {name: a, type: made_suffix, depends_on: [a]}\n",
        "depends on itself",
    ),
    "a circle": (
        HEAD + "steps:\n- {name: a, type: made_suffix, depends_on: [c]}\n"
        "- {name: b, type: made_suffix}\n- {name: c, type: made_suffix}\n",
        "p.yaml:4: step 1 'a' (made_suffix): depends_on: the steps go in a circle: a -> b -> c -> a",
    ),
}


NO_FOLDERS = [
    "..",
    ".",
    "../up",
    "/abs",
    "a/b",
    "a\\b",
    "C:",
    "con",
    "nul",
    "com1",
    "-a",
    "_a",
    "Four",
    "a.b",
    " a",
]
NO_FOLDERS += ["vier vögel", "四", "x" * 300, "a\n", "a\x00", "a\x1b[31m", "\u202eevil", ""]


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_a_mistake_is_told_with_its_place(tmp_path, text, expected):
    lines = mistakes(tmp_path, text)
    assert any(expected in line for line in lines), lines
    assert all(line.startswith("p.yaml") for line in lines)


@pytest.mark.parametrize("name", NO_FOLDERS)
@pytest.mark.parametrize("field", ["name", "prefix", "step"])
def test_a_name_that_is_no_folder_is_refused_and_shown_escaped(tmp_path, name, field):
    data = {"name": "four", "source": {"path": "x"}, "steps": [{"name": "one", "type": "made_suffix"}]}
    (data["steps"][0] if field == "step" else data)["name" if field == "step" else field] = name  # pyright: ignore
    (line,) = mistakes(tmp_path, json.dumps(data), "p.json")
    assert "becomes the name of a folder" in line
    assert line.isprintable() and len(line) < 700


def test_all_mistakes_of_a_file_come_together_in_order_of_lines(tmp_path):
    text = (
        "name: Bad\nsource: {path: x, typo: 1}\nbatch_rows: 0\nbatch_rows: 1\nsteps:\n"
        "- {name: a, type: nosuch}\n- {name: b, type: made_chunk, params: {chunk_size: x, overlap: -1}}\n"
        "- {name: c, type: made_suffix, depends_on: [z]}\n- made_suffix\n"
    )
    lines = mistakes(tmp_path, text)
    assert [int(line.split(":")[1]) for line in lines] == [1, 2, 3, 4, 6, 7, 7, 8, 9]


def test_each_step_of_a_name_that_is_taken_is_told_beside_other_mistakes(tmp_path):
    steps = [f"- {{name: {name}, type: made_suffix}}\n" for name in ("a-b", "a_b", "a-b")]
    lines = mistakes(tmp_path, HEAD + "steps:\n" + "".join(steps) + "- {name: c, type: nosuch}\n")
    assert [line.split(": ")[2].split(",")[0] for line in lines[:2]] == [
        "step 1 is called 'a-b'",
        "step 1 has the name 'a-b' too; give each its own",
    ]
    assert len(lines) == 3


def test_a_broken_step_may_be_depended_on_without_a_second_mistake(tmp_path):
    text = (
        HEAD
        + "steps:\n- {name: a, type: made_suffix, typo: 1}\n- {name: b, type: made_suffix, depends_on: [a]}\n"
    )
    assert len(mistakes(tmp_path, text)) == 1


def test_an_alias_bomb_is_refused_at_once(tmp_path):
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert f"more than {MAX_NODES} values" in mistakes(tmp_path, "\n".join(rows))[0]


def test_a_bomb_of_long_texts_is_refused(tmp_path):
    text = f"a: &a {'x' * 500_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
    assert f"more than {MAX_NODES} values" in mistakes(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("name", "text"), [("p.yaml", "[" * 99), ("p.json", "[" * 99 + "]" * 99), ("p.json", "[" * 400_000)]
)
def test_deep_nesting_is_refused(tmp_path, name, text):
    assert f"more than {MAX_DEPTH} levels deep" in mistakes(tmp_path, text, name)[0]


def test_the_deepest_nesting_breaks_no_parser(tmp_path):
    assert mistakes(tmp_path, "[" * 500_000) and mistakes(tmp_path, "- " * 500_000)


def test_a_file_beyond_the_limit_is_refused(tmp_path):
    (line,) = mistakes(tmp_path, "#" * (MAX_FILE_BYTES + 1))
    assert f"a pipeline's file has at most {MAX_FILE_BYTES}" in line


def test_a_missing_file_a_folder_a_pipe_and_a_strange_name_are_refused(tmp_path):
    (tmp_path / "d.yaml").mkdir()
    os.mkfifo(tmp_path / "pipe.yaml")
    for name, reason in [
        ("no.yaml", "there is no such file"),
        ("d.yaml", "is a folder"),
        ("pipe.yaml", "is a device or pipe"),
        ("a.toml", "ends in .yaml, .yml, .json"),
        ("a\0.yaml", "cannot be read"),
        ("x" * 300 + ".yaml", "cannot be read"),
    ]:
        with pytest.raises(ConfigError, match=reason):
            load_pipeline(tmp_path / name)


JSON_TEXTS = {
    "empty": ("", "p.json: the file is empty"),
    "no json": ('{"name": a}', "p.json:1: this is no JSON: Expecting value"),
    "a comma too many": ('{\n"a": 1,\n}', "p.json:"),
    "equal keys": (
        '{"name": "a",\n"name": "b"}',
        "p.json:2: the key 'name' is there twice, in line 1 and in line 2",
    ),
    "nan": ('{"batch_rows": NaN}', "p.json: NaN is no JSON value"),
    "a lone surrogate": ('{"name":\n"\\ud800"}', r"p.json:2: '\ud800' holds a lone surrogate"),
    "a wrong type": (
        '{"name": "a",\n"batch_rows": "5"}',
        "p.json:2: batch_rows: input should be a valid integer",
    ),
}


@pytest.mark.parametrize(("text", "expected"), JSON_TEXTS.values(), ids=JSON_TEXTS)
def test_a_mistake_in_json_is_told_with_its_place(tmp_path, text, expected):
    lines = mistakes(tmp_path, text, "p.json")
    assert any(expected in line for line in lines), lines


def test_a_step_of_the_wrong_indent_does_not_hide_the_others(tmp_path):
    lines = mistakes(tmp_path, HEAD + "steps:\n- filter_length:\n  min_len: 5\n- {name: b, type: nosuch}\n")
    assert [line.split(":")[2] for line in lines] == [" step 1", " step 2 'b' (nosuch)"]


def test_a_file_may_have_a_byte_order_mark_and_windows_line_ends(tmp_path):
    text = "\ufeff" + (HEAD + STEP).replace("\n", "\r\n")
    assert load(tmp_path, text).name == "four"


_SIGNED = "https://files.example/f.bin?X-Amz-Signature=SECRET123&x=1"
_LOGGED_IN = "postgresql://me:SECRET123@db.example/corpus?password=SECRET123"


@pytest.mark.parametrize(
    "lines",
    [
        f'source: ["{_SIGNED}"]',
        f'source: {{"{_SIGNED}": x}}',
        f'source: {{path: ["{_SIGNED}", 5]}}',
        f'source: {{path: in.jsonl}}\n"{_SIGNED}": 5',
        f'source: {{path: in.jsonl}}\nroot: "{_SIGNED}"',
        'source: {path: in.jsonl}\nroot: "s3://bucket/a?versionId=SECRET123"',
        f'source: {{path: in.jsonl}}\nledger: ["{_LOGGED_IN}"]',
        f'source: {{sql: "{_LOGGED_IN}", query: 5}}',
    ],
)
def test_what_signs_or_logs_in_is_in_no_message(tmp_path, lines: str):
    file = tmp_path / "p.yaml"
    file.write_text(f"name: p\n{lines}\nbatch_rows: 5\nsteps: [{{name: lower, type: lowercase}}]\n")
    with pytest.raises(ConfigError) as error:
        local_folder(load_pipeline(file).root or "")
    assert "SECRET123" not in str(error.value)
    assert "example" in str(error.value) or "bucket" in str(error.value) or "5" in str(error.value)
