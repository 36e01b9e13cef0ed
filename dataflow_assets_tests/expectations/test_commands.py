"""What the commands say of rules and profiles: `run`, `status`, `validate`, `profile`."""

import json

from dataflow_assets_tests.crash import command as cli
from dataflow_assets_tests.expectations.projects import error, project_with, steps, write

LONG = "share(words > 3) <= 0.05"
RULES = (error(LONG, name="Too long"), "null(text) = 0", "rows > 500")


def rows(long_ones: int) -> list[dict]:
    return [{"text": "four words and more" if place < long_ones else f"text {place}"} for place in range(300)]


def command(folder, *arguments):
    environment = cli.environment({"DATAFLOW_ROOT": str(folder / "root")})
    more = ("--batch-rows", "100") if arguments[0] == "run" else ()
    return cli.finish(cli.start(folder, *arguments, *more, env=environment))


def test_a_broken_rule_ends_the_command_with_1_and_is_told(tmp_path):
    project_with(tmp_path, rows(60), *RULES)
    ended = command(tmp_path, "run", "small.yaml")
    assert ended.code == 1
    assert "rule 'Too_long' is broken: Too long: expected share(words > 3) <= 0.05, found 0.6" in ended.err
    assert "stopped early after 1 of 3 batches" in ended.err
    status = command(tmp_path, "status", "small.yaml")
    assert "looked-at: rule null_text_is passed: expected null(text) = 0, found 0" in status.out
    assert "looked-at: rule Too_long failed: Too long" in status.out


def test_rules_are_told_at_the_end_of_a_run_and_in_json(tmp_path):
    project_with(tmp_path, rows(10), *RULES)
    ended = command(tmp_path, "run", "small.yaml")
    assert ended.code == 0
    assert "rule rows_min failed: expected rows > 500, found 300, a warning" in ended.out
    told = json.loads(command(tmp_path, "status", "small.yaml", "--json").out)
    found = {check["rule"]: check for check in told["steps"][0]["checks"]}
    assert found[LONG]["passed"] is True
    assert found["rows > 500"]["value"] == 300


def test_a_changed_limit_goes_on_and_examples_are_in_json(tmp_path):
    project = project_with(tmp_path, rows(60), *RULES)
    assert command(tmp_path, "run", "small.yaml").code == 1
    project.set_steps(steps(LONG))
    assert command(tmp_path, "run", "small.yaml").code == 0
    told = json.loads(command(tmp_path, "status", "small.yaml", "--json").out)
    (check,) = told["steps"][0]["checks"]
    assert check["examples"][0] == {
        "batch": "a_b00000",
        "row_id": "a:1",
        "value": "4",
        "text": "four words and more",
    }


def test_validate_tells_of_rules_that_columns_do_not_fit(tmp_path):
    project_with(tmp_path, rows(1), "null(txt) = 0", 'psi(words, "no.json") < 1')
    ended = command(tmp_path, "validate", "small.yaml")
    assert ended.code == 2
    assert "did you mean 'text'?" in ended.err or "no.json cannot be read" in ended.err


def test_profile_prints_and_writes_what_rules_can_name(tmp_path):
    project = project_with(tmp_path, rows(10))
    assert command(tmp_path, "profile", "small.yaml").code == 1
    command(tmp_path, "run", "small.yaml")
    shown = command(tmp_path, "profile", "small.yaml", "--step", "looked-at")
    assert (shown.code, "300 rows, 300 of them measured" in shown.out) == (0, True)
    written = command(tmp_path, "profile", "small.yaml", "--step", "source", "--to", "new/ref.json")
    assert (written.code, written.err) == (0, "")
    assert json.loads((tmp_path / "new" / "ref.json").read_text())["rows"] == 300
    printed = command(tmp_path, "profile", "small.yaml", "--step", "source", "--json")
    assert json.loads(printed.out) == json.loads((tmp_path / "new" / "ref.json").read_text())
    project.set_steps(steps('psi(chars, "new/ref.json") <= 0.2'))
    write(project, rows(200))
    ended = command(tmp_path, "run", "small.yaml")
    assert "rule psi_chars_new_ref_json_max" in ended.out and "failed" in ended.out


def test_profile_of_a_step_that_is_not_there(tmp_path):
    project_with(tmp_path, rows(1))
    ended = command(tmp_path, "profile", "small.yaml", "--step", "looked-a")
    assert (ended.code, "did you mean 'looked-at'?" in ended.err) == (2, True)
