import random
import sys
import time
from pathlib import Path

import pytest

from dataflow_assets.errors import CorruptFile
from dataflow_assets_tests.crash.command import Finished, Running, environment, file_size_limit, finish, start
from dataflow_assets_tests.exports.append_log import (
    appended,
    day,
    is_whole_export,
    made,
    of_days,
    read,
    write_day,
)

WRITES = 8  # head of the journal, three batches of two writes each, the end
QUICK = [("half", 2), ("half", 5)]
MOMENTS = [
    pytest.param(point, number, ending, marks=[] if (point, number) in QUICK else pytest.mark.long)
    for number in range(1, WRITES + 1)
    for point, ending in (("half", "jsonl"), ("after", "jsonl"), ("zeros", "csv"))
]


def killed(folder: Path, point: str, number: int, ending: str) -> Finished:
    arguments = ["export", "log.yaml", "--to", f"rows.{ending}", "--append"]
    command = [
        sys.executable,
        "-m",
        "dataflow_assets_tests.exports.append_driver",
        f"{point}:{number}",
        *arguments,
    ]
    return finish(Running(command, cwd=folder, env=environment()))


@pytest.mark.parametrize(("point", "number", "ending"), MOMENTS)
def test_a_killed_export_goes_on_where_it_was(tmp_path: Path, point: str, number: int, ending: str):
    work = made(tmp_path, 1)
    assert killed(tmp_path, point, number, ending).code == -9
    to = tmp_path / f"rows.{ending}"
    assert appended(work, to).rows_in_file == 12
    assert appended(made(tmp_path, 2), to).rows_in_file == 24
    assert read(to) == of_days(1, 2)
    assert is_whole_export(made(tmp_path), to)


def test_what_somebody_else_wrote_after_a_kill_is_not_cut_off(tmp_path: Path):
    work = made(tmp_path, 1)
    killed(tmp_path, "half", 5, "jsonl")
    with open(tmp_path / "rows.jsonl", "ab") as file:
        file.write(b"mine\n")
    with pytest.raises(CorruptFile, match=r"from byte .* on it is not batch 'day1_b00001'"):
        appended(work, tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_bytes().endswith(b"mine\n")


def test_a_batch_that_was_torn_and_changed_since_is_written_anew(tmp_path: Path):
    made(tmp_path, 1)
    killed(tmp_path, "half", 7, "jsonl")
    write_day(tmp_path, 1, [*day(1, 10), {"day": 1, "n": 70}, {"day": 1, "n": 71}])
    work = made(tmp_path)
    assert appended(work, tmp_path / "rows.jsonl").rows_in_file == 12
    assert is_whole_export(work, tmp_path / "rows.jsonl")


def test_a_full_disk_leaves_what_can_go_on(tmp_path: Path):
    work = made(tmp_path, 1)
    arguments = ("export", "log.yaml", "--to", "rows.jsonl", "--append")
    done = finish(start(tmp_path, *arguments, preexec_fn=file_size_limit(600)))
    assert (done.code, done.is_clean) == (1, True)
    assert "rows.jsonl cannot be written" in done.err
    assert appended(work, tmp_path / "rows.jsonl").rows_in_file == 12
    assert read(tmp_path / "rows.jsonl") == of_days(1)


@pytest.mark.long
def test_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path):
    chance, to = random.Random(11), tmp_path / "rows.jsonl"
    for number in range(1, 11):
        made(tmp_path, number)
        process = start(tmp_path, "export", "log.yaml", "--to", "rows.jsonl", "--append")
        time.sleep(chance.uniform(0.3, 1.5))
        process.kill()
        process.wait()
    work = made(tmp_path)
    appended(work, to)
    assert sorted(read(to)) == sorted(of_days(*range(1, 11)))
