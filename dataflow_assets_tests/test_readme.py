import re
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from dataflow_assets_tests.markdown_examples import INSTALL, blocks_of, run_examples

TREE = Path(__file__).parents[1]
README = TREE / "README.md"
DOCUMENTS = [README, TREE / "CHANGELOG.md", *sorted((TREE / "docs").glob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def is_installed() -> bool:
    try:
        return bool(version("dataflow_assets"))
    except PackageNotFoundError:
        return False


def names(documents: list[Path]) -> list[str]:
    return [document.name for document in documents]


def install_commands() -> list[str]:
    return [line for block in blocks_of(README) for line in block.commands if line.startswith(INSTALL)]


def test_the_readme_installs_and_runs_with_one_line_and_tests_with_another():
    run, test = install_commands()
    assert run.endswith(" && .venv/bin/dataflow-assets run text_clean")
    assert test.endswith(" && .venv/bin/pytest -n 2 -m ''")


@pytest.mark.parametrize("pattern", ["'run text_clean'", "pytest"])
def test_ci_takes_its_commands_from_the_readme(pattern: str):
    assert f'"$(readme_command {pattern})"' in (TREE / ".ci/run").read_text()
    assert len([line for line in install_commands() if pattern.strip("'") in line]) == 1


@pytest.mark.skipif(not is_installed(), reason="the examples run the installed command")
@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_every_example_runs_as_it_is_written(document: Path, tmp_path: Path):
    shutil.copy(TREE / "workspace.yaml", tmp_path)
    run_examples(document, tmp_path)


@pytest.mark.parametrize("document", DOCUMENTS, ids=names(DOCUMENTS))
def test_links_lead_to_files_that_are_there(document: Path):
    links = [link.partition("#")[0] for link in _LINK.findall(document.read_text("utf-8"))]
    missing = [link for link in links if "://" not in link and not (document.parent / link).exists()]
    assert not missing


def test_the_operator_of_the_readme_has_at_most_15_lines():
    (operator,) = [block for block in blocks_of(README) if block.title and block.title.endswith(".py")]
    assert len(operator.commands) <= 15
