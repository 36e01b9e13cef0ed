import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataflow_assets_tests.cli.conftest import Call
from dataflow_assets_tests.crash.command import command
from dataflow_assets_tests.crash.project import write_project

HEAD = "name: small\nsource: {path: in.jsonl}\nsteps:\n"
BAD_STEP = HEAD + "  - {name: one, type: lowercas, params: {column: text}}\n"
GOOD_STEP = HEAD + "  - {name: one, type: lowercase, params: {column: text}}\n"


def test_list_names_the_shipped_pipelines(call: Call):
    listed = call("list")
    assert listed.code == 0
    assert "text_clean" in listed.out


def test_list_names_those_of_the_users_folder(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write_project(tmp_path)
    monkeypatch.setenv("DATAFLOW_PIPELINES", str(tmp_path))
    assert [line.split()[:2] for line in call("list").out.splitlines()[1:]] == [
        ["four", "4"],
        ["legal_zh", "9"],
        ["pdf_to_chunks", "6"],
        ["reasoning", "4"],
        ["sft_select", "8"],
        ["sft_synthesis", "5"],
        ["text2qa", "4"],
        ["text_clean", "6"],
        ["text_pretrain_en", "11"],
        ["text_pretrain_zh", "11"],
    ]


def test_list_tells_mistakes_beside_the_pipelines(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write_project(tmp_path)
    (tmp_path / "bad.yaml").write_text(BAD_STEP)
    monkeypatch.setenv("DATAFLOW_PIPELINES", str(tmp_path))
    listed = call("list")
    assert listed.code == 2 and "four" in listed.out and "text_clean" in listed.out
    assert "bad.yaml:4" in listed.err


def test_operators_are_listed_by_kind_with_scope_and_first_sentence(tmp_path: Path):
    lines = command(tmp_path, "operators").out.splitlines()
    kinds = [line for line in lines if not line.startswith(" ")]
    assert kinds[:5] == ["filters:", "refiners:", "deduplication:", "splitting:", "conversion:"]
    listed = [line.split(maxsplit=2) for line in lines if line.startswith(" ")]
    assert ["drop_duplicates", "dataset"] in [line[:2] for line in listed]
    assert all(len(line) == 3 and line[2].strip() for line in listed)


def test_an_operator_is_shown_with_its_parameters_and_an_example(call: Call):
    shown = call("operators", "sample_rows").out
    assert shown.startswith("sample_rows (tables, version 1, dataset scope)\n")
    lines = [line.split() for line in shown.splitlines()]
    assert ["rows", "int", "required", "0", "or", "more"] in [line[:6] for line in lines]
    assert ["allocation", "proportional", "|", "equal", '"proportional"'] in [line[:5] for line in lines]
    assert "it reads `language` and writes none" in shown
    assert shown.splitlines()[-1].startswith("- {name: to_look_at, type: sample_rows")


def test_operators_as_json_have_a_schema_of_their_parameters(tmp_path: Path):
    described = {each["name"]: each for each in json.loads(command(tmp_path, "operators", "--json").out)}
    assert all(each["params"]["type"] == "object" for each in described.values())
    merge = described["merge_columns"]
    assert (merge["kind"], merge["scope"], merge["version"]) == ("tables", "row", "1")
    assert (merge["reads"], merge["writes"]) == (["title", "body"], {"text": "string"})
    assert {"name", "type", "default", "range", "meaning"} == set(merge["parameters"][0])


def test_an_unknown_operator_is_answered_with_the_nearest(call: Call):
    answer = call("operators", "lowercas")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "error: there is no operator 'lowercas'; did you mean lowercase?\n"


def test_validate_says_ok_for_each_good_file(call: Call, tmp_path: Path):
    write_project(tmp_path)
    assert call("validate", "four.yaml") == (0, "four.yaml: ok\n", "")


def test_validate_tells_the_mistakes_of_all_files(call: Call, tmp_path: Path):
    (tmp_path / "bad.yaml").write_text(BAD_STEP)
    answer = call("validate", "bad.yaml", "nowhere.yaml")
    assert answer.code == 2
    assert [line.split(":")[1].strip() for line in answer.err.splitlines()] == ["bad.yaml", "nowhere.yaml"]


def test_validate_goes_on_after_a_source_that_cannot_be_read(call: Call, tmp_path: Path):
    write_project(tmp_path)
    (tmp_path / "lost.yaml").write_text(GOOD_STEP.replace("in.jsonl", "lost.jsonl"))
    (tmp_path / "bad.yaml").write_text(BAD_STEP)
    answer = call("validate", "lost.yaml", "./bad.yaml", "four.yaml")
    assert (answer.code, answer.out) == (2, "four.yaml: ok\n")
    first, second = answer.err.splitlines()
    assert first.startswith("error: lost.yaml: ") and "lost.jsonl" in first
    assert second.startswith("error: bad.yaml:4: step 1 'one' (lowercas): ")


def test_validate_names_the_file_of_a_root_that_is_no_folder(call: Call, tmp_path: Path):
    (tmp_path / "far.yaml").write_text(GOOD_STEP.replace("steps:", "root: s3://bucket/data\nsteps:"))
    answer = call("validate", "far.yaml", "nowhere.yaml")
    assert answer.code == 2
    assert [line.split(":")[1].strip() for line in answer.err.splitlines()] == ["far.yaml", "nowhere.yaml"]


def test_validate_tells_files_of_a_newer_version_as_a_mistake(call: Call, tmp_path: Path):
    write_project(tmp_path)
    (tmp_path / "data" / "four").mkdir(parents=True)
    (tmp_path / "data" / "four" / "manifest.json").write_text('{"version": 99, "checksum": ""}')
    answer = call("validate", "four.yaml")
    assert answer.code == 2
    assert answer.err.startswith("error: four.yaml: ") and "newer dataflow_assets" in answer.err


def test_validate_checks_columns_against_the_real_source(call: Call, tmp_path: Path):
    file = write_project(tmp_path)
    file.write_text(
        file.read_text().replace("lowercase, params: {column: text}", "lowercase, params: {column: body}")
    )
    answer = call("validate", "four.yaml")
    assert answer.code == 2
    assert "four.yaml:6: step 1 'lower' (lowercase)" in answer.err
    assert "'body'" in answer.err


def test_validate_tells_operators_that_are_not_ready_and_columns_together(call: Call, tmp_path: Path):
    write_project(tmp_path)
    (tmp_path / "not_ready.py").write_text(
        "from dataflow_assets.operators.refiners.text import Lowercase\n"
        "class NotReady(Lowercase):\n"
        "    def identity(self):\n"
        "        raise ValueError('no such table')\n"
    )
    steps = (
        '  - {name: a, type: "not_ready:NotReady"}\n  - {name: b, type: lowercase, params: {column: no}}\n'
    )
    (tmp_path / "two.yaml").write_text(HEAD + steps)
    for arguments in (["validate", "two.yaml"], ["run", "two.yaml"]):
        answer = call(*arguments)
        assert answer.code == 2
        assert "'a'" in answer.err and "no such table" in answer.err
        assert "step 2 'b' (lowercase)" in answer.err


def test_validate_writes_nothing(call: Call, tmp_path: Path):
    write_project(tmp_path)
    call("validate", "four.yaml")
    assert {path.name for path in tmp_path.iterdir()} == {"four.yaml", "in.jsonl"}


def test_status_of_a_pipeline_that_was_never_run(call: Call, tmp_path: Path):
    write_project(tmp_path)
    status = json.loads(call("status", "four.yaml", "--json").out)
    assert (status["state"], status["rows_read"]) == ("new", 0)
    assert [step["batches_total"] for step in status["steps"]] == [0, 0, 0, 0]


def test_status_as_json_after_a_run(call: Call, done: Path):
    status = json.loads(call("status", "four.yaml", "--json", folder=done).out)
    assert (status["pipeline"], status["state"], status["rows_read"]) == ("four", "done", 60)
    step = status["steps"][2]
    assert set(step) == {
        *("step", "name", "type", "batches_done", "batches_total"),
        *("rows_in", "rows_out", "rejected", "failed", "stale", "usage", "checks"),
    }
    assert (step["step"], step["name"], step["type"], step["stale"]) == (
        3,
        "long_enough",
        "filter_length",
        False,
    )
    assert (step["batches_done"], step["batches_total"]) == (6, 6)
    assert step["rows_in"] == step["rows_out"] + sum(step["rejected"].values()) + step["failed"]


def test_status_for_people_has_a_line_for_each_step(call: Call, done: Path):
    first, *lines = call("status", "four.yaml", folder=done).out.splitlines()
    assert first.startswith("four: done, 60 rows read, 1 ")
    assert [line.split()[1] for line in lines[1:]] == ["lower", "sized", "long_enough", "unique"]


def test_status_of_another_root(call: Call, done: Path, tmp_path: Path):
    status = json.loads(call("status", "four.yaml", "--root", str(tmp_path), "--json", folder=done).out)
    assert status["state"] == "new"


def test_status_names_the_folders_of_steps_that_are_no_more(call: Call, tmp_path: Path):
    write_project(tmp_path)
    for number in (4, 5):
        (tmp_path / "data" / "four" / f"four_step{number}").mkdir(parents=True)
    assert call("status", "four.yaml").out.splitlines()[-1] == (
        "left in data/four by steps that are no more: four_step5; nothing reads them, they can be deleted"
    )
    assert json.loads(call("status", "four.yaml", "--json").out)["leftover_steps"] == ["four_step5"]


def test_status_without_leftovers_says_nothing_of_them(call: Call, done: Path):
    assert "left in" not in call("status", "four.yaml", folder=done).out
    assert json.loads(call("status", "four.yaml", "--json", folder=done).out)["leftover_steps"] == []


def test_run_and_status_name_the_files_that_no_reader_fits(call: Call, tmp_path: Path):
    source = tmp_path / "in"
    source.mkdir()
    (source / ".DS_Store").touch()
    (source / "a.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "small.yaml").write_text(GOOD_STEP.replace("in.jsonl", "in"))
    assert "left out" not in call("run", "small.yaml").out
    (source / "b.jsonl.bz2").write_bytes(b"BZh9")
    line = "left out: in/b.jsonl.bz2 (no reader for .bz2)"
    assert line in call("run", "small.yaml").out.splitlines()
    assert line in call("status", "small.yaml").out.splitlines()
    assert json.loads(call("status", "small.yaml", "--json").out)["left_out"] == ["in/b.jsonl.bz2"]


def test_run_and_status_name_columns_that_no_row_of_the_source_has(call: Call, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"text": "a", "empty": null, "n": 1}\n')
    source = "{path: in.jsonl, columns: [text, empty, nope, n, old], rename: {n: m, old: new}}"
    (tmp_path / "small.yaml").write_text(GOOD_STEP.replace("{path: in.jsonl}", source))
    line = (
        "no row of the source has 'nope', 'old', which `source.columns` or `source.rename` names; are the "
        "names spelled as in the source?"
    )
    assert line in call("run", "small.yaml").out.splitlines()
    assert line in call("status", "small.yaml").out.splitlines()
    assert json.loads(call("status", "small.yaml", "--json").out)["missing_columns"] == ["nope", "old"]


def test_sample_shows_rows_as_the_step_left_them(call: Call, done: Path):
    shown = call("sample", "four.yaml", "lower", "-n", "2", folder=done).out
    assert shown == "in:1\n  n: 0\n  text: <b>row 0</b>\n\nin:2\n  n: 1\n  text: <b>row 1</b> more\n\n"


def test_sample_as_a_difference_shows_what_was_before(call: Call, done: Path):
    shown = call("sample", "four.yaml", "lower", "-n", "1", "--diff", folder=done).out
    assert shown == "in:1\n  - text: <b>Row 0</b>\n  + text: <b>row 0</b>\n\n"


def test_sample_as_a_difference_does_not_take_nan_for_a_change(call: Call, tmp_path: Path):
    pq.write_table(pa.table({"text": ["A"], "x": [float("nan")]}), tmp_path / "in.parquet")
    step = GOOD_STEP.replace("in.jsonl", "in.parquet").replace("steps:", "format: parquet\nsteps:")
    (tmp_path / "small.yaml").write_text(step)
    assert call("run", "small.yaml").code == 0
    assert call("sample", "small.yaml", "one", "--diff").out == "in:1\n  - text: A\n  + text: a\n\n"


def test_the_source_alone_can_be_run(call: Call, tmp_path: Path):
    write_project(tmp_path)
    assert call("run", "four.yaml", "--select", "source").code == 0
    status = json.loads(call("status", "four.yaml", "--json").out)
    assert (status["state"], status["rows_read"]) == ("partial", 60)
    assert [step["batches_done"] for step in status["steps"]] == [0, 0, 0, 0]


def test_sample_as_a_difference_shows_rejected_rows_with_their_reason(call: Call, done: Path):
    shown = call("sample", "four.yaml", "unique", "-n", "1", "--diff", folder=done).out
    assert " rejected\n" in shown
    assert "  + reject_reason: duplicate\n" in shown


def test_sample_of_the_source(call: Call, done: Path):
    assert call("sample", "four.yaml", "source", "-n", "1", folder=done).out.startswith("in:1\n")


def test_sample_of_an_unknown_step_names_the_known_ones(call: Call, done: Path):
    answer = call("sample", "four.yaml", "lowr", folder=done)
    assert answer.code == 2
    assert "lower" in answer.err


def test_sample_before_the_first_run_says_what_to_do(call: Call, tmp_path: Path):
    write_project(tmp_path)
    answer = call("sample", "four.yaml", "lower")
    assert answer.code == 1
    assert "was not read" in answer.err


def test_control_characters_of_names_and_values_are_escaped(call: Call, tmp_path: Path):
    (tmp_path / "\x1b[31m.yaml").write_text(GOOD_STEP)
    answer = call("validate", "\x1b[31m.yaml")
    assert answer.code == 2
    assert "\x1b" not in answer.out + answer.err


def test_a_pipeline_that_is_not_there_is_a_mistake(call: Call):
    answer = call("status", "text_claen")
    assert answer.code == 2
    assert "text_clean" in answer.err


@pytest.mark.parametrize(
    "arguments", [["nothing"], ["run"], ["status", "text_clean", "--what"], ["sample", "text_clean"]]
)
def test_wrong_usage_ends_with_2(call: Call, arguments: list[str]):
    answer = call(*arguments)
    assert answer.code == 2
    assert answer.err


def test_schema_is_a_json_schema_of_pipeline_files(call: Call):
    schema = json.loads(call("schema").out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"name", "source", "steps"} <= set(schema["properties"])
