import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError, RunError
from dataflow_assets.exports.folder import whole_folder
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.exports.conftest import Exported
from dataflow_assets_tests.torch.made_steps import made, texts

KILLED = """
import os, signal, sys
from pathlib import Path
from dataflow_assets.exports.folder import whole_folder
with whole_folder(Path(sys.argv[1])) as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_earlier_export_is_replaced(exported: Exported, tmp_path: Path):
    exported(texts(3), "hf")
    work = made(tmp_path / "pipeline", texts(3))
    assert names(exported(work, "webdataset")) == {"shard-000000.tar", ".dataflow_assets"}
    assert names(tmp_path) == {"pipeline", "out"}


@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_no_export_wrote_is_not_replaced(exported: Exported, tmp_path: Path, there: str):
    if there == "folder":
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").touch()
    else:
        (tmp_path / "out").touch()
    with pytest.raises(ConfigError):
        exported(texts(1), "hf")
    assert (tmp_path / "out").exists()


@pytest.mark.parametrize("mine", [".git/HEAD", "data/mine.jsonl", "notes.md"])
def test_an_export_in_which_somebody_put_something_is_not_replaced(
    exported: Exported, tmp_path: Path, mine: str
):
    out = exported(texts(1), "hf")
    (out / mine).parent.mkdir(exist_ok=True)
    (out / mine).write_text("by hand")
    work = made(tmp_path / "pipeline", texts(3))
    with pytest.raises(ConfigError, match=f"holds {mine.partition('/HEAD')[0]}"):
        exported(work, "webdataset")
    assert (out / mine).read_text() == "by hand"


def test_a_killed_export_leaves_the_earlier_one_as_it_was(tmp_path: Path):
    with whole_folder(tmp_path / "out") as folder:
        (folder / "first").touch()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out")], env=environment)
    assert done.returncode == -signal.SIGKILL
    assert names(tmp_path / "out") == {"first", ".dataflow_assets"}
    with whole_folder(tmp_path / "out") as folder:
        (folder / "second").touch()
    assert names(tmp_path / "out") == {"second", ".dataflow_assets"}
    assert names(tmp_path) == {"out"}


def test_an_error_leaves_nothing(tmp_path: Path):
    with pytest.raises(RunError), whole_folder(tmp_path / "out") as folder:
        (folder / "half").touch()
        raise RunError("no")
    assert not names(tmp_path)


def test_the_command_writes_a_folder_and_refuses_as_for_a_file(
    command_here: Command, undisturbed: Path, tmp_path: Path
):
    to = str(tmp_path / "out")
    assert command_here(undisturbed.parent, "export", "four.yaml", "--to", to, "--as", "hf").code == 1
    done = command_here(
        undisturbed.parent, "export", "four.yaml", "--step", "lower", "--to", to, "--as", "hf"
    )
    assert (done.code, done.out) == (0, f"60 rows in {to}\n")
    assert names(tmp_path / "out") == {"README.md", "data", ".dataflow_assets"}


@pytest.mark.parametrize(
    "options",
    [["--column", "prompt=n"], ["--as", "hf", "--column", "x=y"], ["--as", "hf", "--for-spreadsheet"]],
)
def test_options_that_do_not_go_together_are_a_mistake(
    command_here: Command, undisturbed: Path, options: list[str]
):
    arguments = ["export", "four.yaml", "--step", "lower", "--to", "never.csv", *options]
    assert command_here(undisturbed.parent, *arguments).code == 2
    assert not (undisturbed.parent / "never.csv").exists()
