from pathlib import Path

import yaml
from dotenv import dotenv_values

from dataflow_assets_tests.cli.conftest import Call
from dataflow_assets_tests.crash.command import command, environment, finish, start


def test_init_makes_a_home_that_dagster_finds(tmp_path: Path):
    assert command(tmp_path, "init") == (0, f"Dagster home: {tmp_path / '.dagster_home'}\n", "")
    settings = yaml.safe_load((tmp_path / ".dagster_home" / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
    assert dotenv_values(tmp_path / ".env") == {
        "DAGSTER_HOME": str(tmp_path / ".dagster_home"),
        "DAGSTER_EMIT_PARTITION_SUBSET_IN_PLANNED_EVENTS": "true",
        "DAGSTER_DISABLE_TELEMETRY": "1",
    }


def test_init_changes_nothing_that_is_there(tmp_path: Path):
    (tmp_path / ".env").write_text("TOKEN=secret")
    command(tmp_path, "init")
    before = (tmp_path / ".env").read_text()
    (tmp_path / ".dagster_home" / "dagster.yaml").write_text("# mine\n")
    command(tmp_path, "init")
    assert before.startswith("TOKEN=secret\nDAGSTER_HOME=")
    assert (tmp_path / ".env").read_text() == before
    assert (tmp_path / ".dagster_home" / "dagster.yaml").read_text() == "# mine\n"


def test_init_respects_a_home_that_is_set(tmp_path: Path):
    home = tmp_path / "elsewhere"
    ended = finish(start(tmp_path, "init", env=environment({"DAGSTER_HOME": str(home)})))
    assert ended.out == f"Dagster home: {home}\n"
    assert not (tmp_path / ".env").exists()


def test_a_relative_home_is_a_mistake(tmp_path: Path):
    ended = finish(start(tmp_path, "init", env=environment({"DAGSTER_HOME": "home"})))
    assert (ended.code, ended.is_clean) == (2, True)
    assert "'home'" in ended.err


def test_help_tells_the_exit_codes(call: Call):
    shown = call("--help")
    assert shown.code == 0
    assert "5 done, but rows wait" in " ".join(shown.out.split())


def test_version_is_told(call: Call):
    shown = call("--version")
    assert shown.code == 0
    assert shown.out.startswith("dataflow-assets")
