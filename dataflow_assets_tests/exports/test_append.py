import os
import shutil
from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError, CorruptFile, PipelineBusy, RunError
from dataflow_assets.exports.append import Grown, append_step
from dataflow_assets.exports.growing_file import growing_file
from dataflow_assets_tests.exports.append_log import appended, is_whole_export, made, of_days, read, write_day

ENDINGS = ["jsonl", "csv"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_new_batches_come_behind_the_others(tmp_path: Path, ending: str):
    to = tmp_path / f"rows.{ending}"
    assert appended(made(tmp_path, 1), to) == Grown(12, 3, 12)
    assert appended(made(tmp_path, 2, 3), to) == Grown(24, 6, 36)
    assert read(to) == of_days(1, 2, 3)
    assert is_whole_export(made(tmp_path), to)


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_new_changes_nothing(tmp_path: Path, ending: str):
    to, work = tmp_path / f"rows.{ending}", made(tmp_path, 1)
    appended(work, to)
    before = [(path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(tmp_path.glob("rows*"))]
    assert appended(work, to) == Grown(0, 0, 12)
    assert [(path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(tmp_path.glob("rows*"))] == before


def test_batches_come_in_the_order_of_the_exports(tmp_path: Path):
    to = tmp_path / "rows.jsonl"
    appended(made(tmp_path, 2), to)
    appended(made(tmp_path, 1), to)
    assert read(to) == of_days(2, 1)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.json", "rows.pickle"])
def test_a_file_that_cannot_grow_is_refused_by_name(tmp_path: Path, name: str):
    with pytest.raises(ConfigError, match=f"a {name[5:]} file cannot grow: .*{name}"):
        appended(made(tmp_path, 1), tmp_path / name)
    assert not list(tmp_path.glob("rows*"))


def test_a_file_of_which_nobody_knows_what_is_in_it_is_left_alone(tmp_path: Path):
    to = tmp_path / "rows.jsonl"
    to.write_text("mine\n")
    with pytest.raises(ConfigError, match=r"has no journal rows\.jsonl\.journal"):
        appended(made(tmp_path, 1), to)
    assert (to.read_text(), list(tmp_path.glob("*.journal"))) == ("mine\n", [])


def test_a_file_of_other_choices_is_refused(tmp_path: Path):
    to, work = tmp_path / "rows.jsonl", made(tmp_path, 1)
    appended(work, to)
    with pytest.raises(ConfigError, match="was begun with row_id False"):
        append_step(work, None, to, with_row_id=True)


def changes(path: Path, change: str) -> None:
    """What somebody else does to the file."""
    data = path.read_bytes()
    if change == "a line more":
        path.write_bytes(data + b'{"mine": 1}\n')
    elif change == "a line less":
        path.write_bytes(data[: data[:-1].rindex(b"\n") + 1])
    elif change == "another value":
        path.write_bytes(data.replace(b'"n":3', b'"n":9'))
    elif change == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()


@pytest.mark.parametrize("change", ["a line more", "a line less", "another value", "empty", "gone"])
def test_a_file_that_somebody_else_changed_is_refused(tmp_path: Path, change: str):
    to = tmp_path / "rows.jsonl"
    appended(made(tmp_path, 1), to)
    changes(to, change)
    left = to.read_bytes() if to.exists() else b""
    with pytest.raises(CorruptFile, match=r"was changed by somebody else: .*; put it back as it was"):
        appended(made(tmp_path, 2), to)
    assert to.read_bytes() == left


def test_a_copy_of_both_files_goes_on(tmp_path: Path):
    appended(made(tmp_path, 1), tmp_path / "rows.jsonl")
    (tmp_path / "copy").mkdir()
    for path in tmp_path.glob("rows*"):
        shutil.copy(path, tmp_path / "copy")
    assert appended(made(tmp_path, 2), tmp_path / "copy" / "rows.jsonl").rows_in_file == 24


def test_a_link_is_the_file_that_it_leads_to(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "rows.jsonl").symlink_to(tmp_path / "real" / "all.jsonl")
    appended(made(tmp_path, 1), tmp_path / "rows.jsonl")
    assert sorted(path.name for path in (tmp_path / "real").iterdir()) == ["all.jsonl", "all.jsonl.journal"]
    assert (tmp_path / "rows.jsonl").is_symlink()


def test_a_batch_that_changed_since_is_named(tmp_path: Path):
    to = tmp_path / "rows.jsonl"
    appended(made(tmp_path, 1, 2), to)
    write_day(tmp_path, 2, [{"day": 2, "n": 0}])
    left = to.read_bytes()
    with pytest.raises(RunError, match=r"day2_b00000 \(changed\), day2_b00001 \(not in the step\)"):
        appended(made(tmp_path, 3), to)
    assert to.read_bytes() == left


def test_a_late_column_is_in_the_new_lines_of_jsonl(tmp_path: Path):
    to = tmp_path / "rows.jsonl"
    appended(made(tmp_path, 1), to)
    write_day(tmp_path, 2, [{"day": 2, "n": 0, "late": True}])
    assert appended(made(tmp_path), to) == Grown(1, 1, 13)
    old, *_, new = to.read_text().splitlines()
    assert ('"late"' in old, new) == (False, '{"day":2,"n":0,"text":null,"tags":null,"late":true}')
    assert appended(made(tmp_path, 3), to) == Grown(12, 3, 25)


def test_a_late_column_is_refused_in_csv_where_it_has_a_value(tmp_path: Path):
    to = tmp_path / "rows.csv"
    appended(made(tmp_path, 1), to)
    write_day(tmp_path, 3, [{"day": 3, "n": 0, "late": True}])
    with pytest.raises(RunError, match=r"day3_b00000 has a column 'late', which the first line of"):
        appended(made(tmp_path, 2), to)
    assert read(to) == of_days(1, 2)


def test_a_column_of_another_type_is_refused_in_csv(tmp_path: Path):
    to = tmp_path / "rows.csv"
    write_day(tmp_path, 1, [{"day": 1, "n": 0, "text": "0"}])
    appended(made(tmp_path), to)
    write_day(tmp_path, 2, [{"day": 2, "n": 0, "text": {"a": 1}}])
    with pytest.raises(RunError, match=r"rows.csv are no longer|another type in 'text' than the string of"):
        appended(made(tmp_path), to)


def test_two_exports_at_once_do_not_mix(tmp_path: Path):
    work = made(tmp_path, 1)
    with growing_file(tmp_path / "rows.jsonl"), pytest.raises(PipelineBusy, match="another process appends"):
        appended(work, tmp_path / "rows.jsonl")
    assert appended(work, tmp_path / "rows.jsonl").rows_in_file == 12


def test_a_damaged_journal_is_told(tmp_path: Path):
    to = tmp_path / "rows.jsonl"
    appended(made(tmp_path, 1), to)
    journal = tmp_path / "rows.jsonl.journal"
    journal.write_bytes(journal.read_bytes().replace(b'"batch"', b'\x00"bat', 1))
    with pytest.raises(CorruptFile, match=r"its journal rows\.jsonl\.journal is damaged"):
        appended(made(tmp_path, 2), to)


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path):
    (tmp_path / "rows.jsonl").mkdir()
    with pytest.raises(RunError, match="cannot be written"):
        appended(made(tmp_path, 1), tmp_path / "rows.jsonl")
    os.rmdir(tmp_path / "rows.jsonl")
