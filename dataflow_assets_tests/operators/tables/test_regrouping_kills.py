"""SIGKILL while rows are moved between batches; then the same command ends as if nothing had happened."""

from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import run
from dataflow_assets_tests.crash.compare import final_files, records, temporaries
from dataflow_assets_tests.crash.project import write_project

KILLED, DONE = -9, 0
STEPS = """steps:
  - {name: mixed, type: shuffle, params: {seed: 5}}
  - {name: best, type: sql, params: {query: "FROM input WHERE n % 3 > 0 ORDER BY length(text), row_id"}}
"""
# Six records each of the source, then of the summaries, verdicts and batches of the two steps.
PLACES = [
    "after_record:15",
    *(
        pytest.param(place, marks=pytest.mark.slow)
        for place in (
            "after_record:9",
            "before_write:17",
            "after_record:22",
            "before_record:32",
            "after_record:40",
        )
    ),
]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_project(folder, steps=STEPS)
    done = run(folder)
    assert done.code == DONE, done.err
    return folder / "data"


@pytest.mark.parametrize("place", PLACES)
def test_a_killed_run_goes_on(tmp_path: Path, undisturbed: Path, place: str):
    write_project(tmp_path, steps=STEPS)
    assert run(tmp_path, kill=place).code == KILLED
    before = records(tmp_path / "data")
    assert run(tmp_path).code == DONE
    assert final_files(tmp_path / "data") == final_files(undisturbed)
    assert temporaries(tmp_path / "data") == []
    after = records(tmp_path / "data")
    # A decision that was torn is made again as a whole; nothing else is.
    assert [path for path in before if after[path] != before[path] and "/verdicts/" not in path] == []
