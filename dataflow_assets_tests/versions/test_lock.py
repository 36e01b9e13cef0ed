"""The lock of a run: repeated, refused by name, compared, and free of what belongs to one machine."""

import json
from pathlib import Path

import pytest
import yaml

from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.crash.command import command
from dataflow_assets_tests.versions.conftest import write_pages
from dataflow_assets_tests.versions.test_dvc import change

FILE = "pages.lock.json"
RANDOM = "name: luck, type: map_python, params: {function: 'luck:luck', columns: {luck: float64}}"


@pytest.fixture
def locked(pages: Path, command_here: Command) -> Path:
    """The project, run and locked."""
    assert command_here(pages, "run", "pages.yaml").code == 0
    assert command_here(pages, "lock", "pages.yaml").code == 0
    return pages


def edit(folder: Path, **changes: object) -> None:
    lock = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps({**lock, **changes}))


def differing(command_here: Command, folder: Path, *sides: str) -> list[tuple[str, str]]:
    done = command_here(folder, "diff", *sides, "--json")
    assert done.code == 0, done
    return [(one["where"], one["what"]) for one in json.loads(done.out)]


def test_two_machines_write_the_same_lock(locked: Path, tmp_path: Path) -> None:
    other = write_pages(tmp_path / "other" / "place").parent
    assert command(other, "run", "pages.yaml").code == 0
    assert command(other, "lock", "pages.yaml").code == 0
    assert (other / FILE).read_bytes() == (locked / FILE).read_bytes()
    assert str(tmp_path) not in (locked / FILE).read_text()


def test_a_locked_run_in_another_place_makes_the_same_rows(
    locked: Path, tmp_path: Path, command_here: Command
) -> None:
    other = write_pages(tmp_path / "other").parent
    done = command_here(other, "run", "pages.yaml", "--locked", str(locked / FILE))
    assert done.code == 0 and "The rows are those of" in done.out
    assert differing(command_here, other, str(locked / FILE), "pages.yaml") == []


def test_a_locked_run_refuses_each_thing_that_differs_by_name(locked: Path, command_here: Command) -> None:
    change(locked, "min_chars: 12", "min_chars: 13")
    with open(locked / "in.jsonl", "a") as file:
        file.write('{"n": 41, "text": "one more row"}\n')
    edit(locked, versions={**json.loads((locked / FILE).read_text())["versions"], "pyarrow": "0.1"})
    before = (locked / "data/pages/manifest.json").read_bytes()
    done = command_here(locked, "run", "pages.yaml", "--locked", FILE)
    assert done.code == 2
    assert "step long_enough: params.min_chars was 12, is 13 (locked by pages.lock.json)" in done.err
    assert "inputs: in.jsonl was" in done.err and "versions: pyarrow was 0.1" in done.err
    assert (locked / "data/pages/manifest.json").read_bytes() == before


def test_other_rows_from_the_same_plan_are_told_after_the_run(locked: Path, command_here: Command) -> None:
    steps = json.loads((locked / FILE).read_text())["steps"]
    steps[2]["rows"]["batches"]["in_b00001"] = "0" * 32
    edit(locked, steps=steps)
    done = command_here(locked, "run", "pages.yaml", "--locked", FILE)
    assert done.code == 1
    assert "step long_enough: batches was 4, is 4: 1 changed, 0 new, 0 gone" in done.err


def test_a_fresh_run_may_be_locked(locked: Path, command_here: Command) -> None:
    done = command_here(locked, "run", "pages.yaml", "--locked", FILE, "--fresh")
    assert done.code == 0 and "The rows are those of" in done.out, done


def test_a_fresh_run_of_a_random_step_names_the_batches_that_are_others(
    pages: Path, command_here: Command
) -> None:
    change(pages, "name: lower, type: lowercase, params: {column: text}", RANDOM)
    (pages / "luck.py").write_text("import random\n\ndef luck(row):\n    return {'luck': random.random()}\n")
    assert command_here(pages, "run", "pages.yaml").code == 0
    assert command_here(pages, "lock", "pages.yaml").code == 0
    done = command_here(pages, "run", "pages.yaml", "--locked", FILE, "--fresh")
    assert done.code == 1 and "the run made other rows than pages.lock.json says" in done.err, done
    assert "step luck: batches was 4, is 4: 4 changed, 0 new, 0 gone" in done.err


def test_diff_tells_step_by_step_what_changed(locked: Path, command_here: Command) -> None:
    change(locked, "min_chars: 12", "min_chars: 17")
    assert command_here(locked, "run", "pages.yaml").code == 0
    assert differing(command_here, locked, FILE, "pages.yaml") == [
        ("step long_enough", "params.min_chars"),
        ("step long_enough", "rows_out"),
        ("step long_enough", "rejected too_short"),
        ("step long_enough", "batches"),
    ]
    assert command_here(locked, "diff", FILE, "pages.yaml", "--exit-code").code == 1
    assert "no difference" in command_here(locked, "diff", FILE, FILE, "--exit-code").out


@pytest.mark.parametrize("name", ["made.json", "made.yaml", "made"])
def test_a_lock_of_any_name_is_a_lock_to_diff(locked: Path, command_here: Command, name: str) -> None:
    (locked / FILE).rename(locked / name)
    assert differing(command_here, locked, name, "pages.yaml") == []
    assert differing(command_here, locked, "pages.yaml", name) == []


def test_a_pipeline_in_json_is_no_lock_to_diff(locked: Path, command_here: Command) -> None:
    (locked / "pages.json").write_text(json.dumps(yaml.safe_load((locked / "pages.yaml").read_text())))
    assert differing(command_here, locked, FILE, "pages.json") == []


def test_diff_tells_of_steps_that_came_and_went(locked: Path, command_here: Command) -> None:
    change(locked, "name: lower,", "name: small,")
    found = differing(command_here, locked, FILE, "pages.yaml")
    assert {("step lower", "step"), ("step small", "step"), ("step marked", "depends_on")} <= set(found)


def test_diff_says_where_the_rows_are_not_those_of_the_parameters(
    locked: Path, command_here: Command
) -> None:
    change(locked, "min_chars: 12", "min_chars: 17")
    assert differing(command_here, locked, FILE, "pages.yaml") == [("step long_enough", "params.min_chars")]
    assert "not up to date" in command_here(locked, "diff", FILE, "pages.yaml").err


def test_what_is_not_up_to_date_cannot_be_locked(locked: Path, command_here: Command) -> None:
    change(locked, "min_chars: 12", "min_chars: 17")
    done = command_here(locked, "lock", "pages.yaml")
    assert done.code == 1 and "not up to date" in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no lock file"),
        ("[1]", "has no lock_version"),
        ('{"lock_version": 99}', "has lock_version 99"),
        ('{"lock_version": 1, "pipeline": 3}', "is no whole lock file: pipeline"),
        ('{"lock_version": "\\u001b[31m"}', "has lock_version '"),
    ],
)
def test_what_is_no_lock_is_refused(pages: Path, command_here: Command, text: str, words: str) -> None:
    (pages / FILE).write_text(text)
    done = command_here(pages, "diff", FILE, FILE)
    assert done.code == 2 and words in done.err and "\x1b" not in done.err
    assert command_here(pages, "diff", "gone.lock.json", FILE).code == 2


def test_a_lock_has_no_secret_and_no_value_of_the_environment(
    pages: Path, command_here: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVATE_WORDS", "s3cr3t-w0rds.txt")
    change(pages, "words: words.txt", "words: '${PRIVATE_WORDS}'")
    assert command_here(pages, "run", "pages.yaml").code == 0
    assert command_here(pages, "lock", "pages.yaml").code == 0
    text = (pages / FILE).read_text()
    assert "s3cr3t" not in text and "${PRIVATE_WORDS}" in text


def test_a_lock_hides_the_password_of_a_url(pages: Path, command_here: Command) -> None:
    change(pages, "words: words.txt", "words: 'postgresql://ada:s3cr3t@db.example:5432/words'")
    assert command_here(pages, "run", "pages.yaml").code == 0
    assert command_here(pages, "lock", "pages.yaml").code == 0
    text = (pages / FILE).read_text()
    assert "s3cr3t" not in text and "postgresql://ada:***@db.example:5432/words" in text


def test_rows_in_another_format_are_up_to_date_until_the_next_run(pages: Path, command_here: Command) -> None:
    assert command_here(pages, "run", "pages.yaml", "--format", "parquet").code == 0
    assert json.loads(command_here(pages, "status", "pages.yaml", "--json").out)["state"] == "done"
    for said in (("export", "--to", "all.jsonl"), ("lock",)):
        assert command_here(pages, said[0], "pages.yaml", *said[1:]).code == 0
    assert command_here(pages, "diff", FILE, "pages.yaml", "--exit-code").code == 0
    assert len(list(pages.glob("data/pages/pages_step3/*.parquet"))) == 4
    assert command_here(pages, "run", "pages.yaml").code == 0
    assert not list(pages.glob("data/pages/**/*.parquet"))


@pytest.mark.parametrize("said", [("export", "--to", "all.jsonl"), ("lock",)])
def test_what_needs_a_run_names_the_pipeline_as_the_command_takes_it(
    said: tuple[str, ...], locked: Path, command_here: Command
) -> None:
    change(locked, "min_chars: 12", "min_chars: 13")
    done = command_here(locked, said[0], "pages.yaml", *said[1:])
    assert done.code == 1 and "`dataflow-assets run pages.yaml` first" in done.err
