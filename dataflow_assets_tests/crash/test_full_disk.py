"""Files cannot grow past a limit, as on a full disk: the run ends with words, and goes on later.

The limit is the kernel's (RLIMIT_FSIZE). As Dagster's own databases are larger than our files, it
is set once for the whole process, and once for the writes of step files and records alone.
"""

from pathlib import Path

import pytest

from dataflow_assets_tests.crash.command import Finished, file_size_limit, run
from dataflow_assets_tests.crash.compare import final_files, records, temporaries

WRITES = (1, 2, 7, 12, 14, 16, 25, 33, 41, 55, 62, 70, 80)
LIMITS_BYTES = (0, 30, 200, 5_000, 20_000, 60_000, 90_000, 120_000)


def said_so(ended: Finished, folder: Path) -> None:
    """Asserts that the run ended as failed, and that its message names a file of the folder."""
    assert (ended.code, ended.is_clean) == (1, True), ended
    last_line = ended.err.splitlines()[-1]
    assert "error: " in last_line and str(folder) in last_line, ended


def goes_on(folder: Path, undisturbed: Path) -> None:
    assert run(folder).code == 5
    assert final_files(folder / "data") == final_files(undisturbed)
    assert temporaries(folder / "data") == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3))
def test_no_room_for_step_files(project: Path, undisturbed: Path, first: int) -> None:
    for number in WRITES[first::3]:
        before = records(project / "data")
        said_so(run(project, kill=f"full_disk:{max(1, number - 2 * len(before))}"), project)
        assert {path: data for path, data in records(project / "data").items() if path in before} == before
    goes_on(project, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2))
def test_no_room_at_all(project: Path, undisturbed: Path, first: int) -> None:
    for limit in LIMITS_BYTES[first::2]:
        said_so(run(project, preexec_fn=file_size_limit(limit)), project)
    goes_on(project, undisturbed)
