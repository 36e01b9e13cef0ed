"""The copies of this machine: exact after a look, whatever happened in the store or on the disk."""

import shutil
from pathlib import Path

import pytest

from dataflow_assets.control import look_again, pipeline_lock
from dataflow_assets.io.atomic import make_folder, remove, write_atomically
from dataflow_assets.io.objects.copies import copies_of
from dataflow_assets.io.objects.journal import Journal, Known
from dataflow_assets.io.objects.packs import packed, unpacked
from dataflow_assets.io.objects.places import local_folder
from dataflow_assets_tests.objects.bucket import Bucket


@pytest.fixture
def folder(here: Bucket) -> Path:
    """A pipeline's folder, with one record."""
    folder = local_folder(f"s3://{here.name}/data") / "p"
    make_folder(folder / "p_step1" / "_commits")
    write_atomically(folder / "p_step1" / "_commits" / "p_b00000.json", b"{}")
    return folder


def looked(folder: Path) -> list[str]:
    """The files that are here after a fresh look, but ours."""
    copies_of(folder)._refreshed.clear()
    look_again(folder)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("[!.]*") if path.is_file())


def test_a_record_that_another_machine_put_is_here_after_a_look(here, folder) -> None:
    here.client().put_object(Bucket=here.name, Key="data/p/p_step1/_commits/p_b00001.json", Body=b"[1]")
    here.client().put_object(Bucket=here.name, Key="data/p/p_step1/_commits/p_b00000.json", Body=b"[0]")
    assert looked(folder) == ["p_step1/_commits/p_b00000.json", "p_step1/_commits/p_b00001.json"]
    assert (folder / "p_step1/_commits/p_b00000.json").read_bytes() == b"[0]"


def test_a_record_that_is_gone_there_is_gone_here(here, folder) -> None:
    here.client().delete_object(Bucket=here.name, Key="data/p/p_step1/_commits/p_b00000.json")
    assert looked(folder) == []


def test_a_copy_that_was_changed_or_lost_here_is_brought_again(folder) -> None:
    copy = folder / "p_step1/_commits/p_b00000.json"
    copy.write_bytes(b"torn")
    looked(folder)
    assert copy.read_bytes() == b"{}"
    shutil.rmtree(folder)
    assert looked(folder) == ["p_step1/_commits/p_b00000.json"]


def test_rows_are_brought_when_they_are_read(here, folder) -> None:
    here.client().put_object(Bucket=here.name, Key="data/p/p_step1/p_b00000.jsonl", Body=b"rows")
    path = folder / "p_step1/p_b00000.jsonl"
    assert str(path.relative_to(folder)) not in looked(folder)
    assert copies_of(folder).names_in(path.parent) == ["_commits", "p_b00000.jsonl"]
    copies_of(folder).bring(str(path))
    assert path.read_bytes() == b"rows"
    assert "p_step1/p_b00000.jsonl" in looked(folder)


def test_what_is_removed_here_is_removed_there(here, folder) -> None:
    remove(folder / "p_step1/_commits/p_b00000.json")
    assert here.names() == []


def test_names_that_lead_out_of_the_folder_are_not_copied(here, folder, tmp_path) -> None:
    for name in ("../../../../evil", "a//b", "p_step1/", f"{'n' * 300}"):
        here.client().put_object(Bucket=here.name, Key=f"data/p/{name}", Body=b"x")
    assert looked(folder) == ["p_step1/_commits/p_b00000.json"]
    assert not list(tmp_path.rglob("evil"))


def test_many_records_are_brought_as_one(here, folder, monkeypatch) -> None:
    commits = folder / "p_step1" / "_commits"
    with pipeline_lock(folder):
        for number in range(1, 100):
            write_atomically(commits / f"p_b{number:05d}.json", f"[{number}]".encode())
    assert "data/p/p_step1/_commits/.pack" in here.names()
    here.client().put_object(Bucket=here.name, Key="data/p/p_step1/_commits/p_b00007.json", Body=b"new")
    monkeypatch.setenv("DATAFLOW_CACHE", str(folder.parents[3] / "other"))
    other = local_folder(f"s3://{here.name}/data") / "p"
    asked: list[str] = []
    bring = type(copies_of(other)).bring
    monkeypatch.setattr(
        type(copies_of(other)), "bring", lambda self, path: asked.append(path) or bring(self, path)
    )
    assert len(looked(other)) == 100
    assert [Path(path).name for path in asked] == ["p_b00007.json"]
    assert (other / "p_step1/_commits/p_b00007.json").read_bytes() == b"new"
    assert (other / "p_step1/_commits/p_b00099.json").read_bytes() == b"[99]"


def test_a_damaged_pack_is_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    pack = packed(tmp_path, {"a": Known(1, "tag"), "gone": Known(1, "tag")})
    assert unpacked(pack) == {"a": ("tag", b"1")}
    assert unpacked(pack[:-3]) == unpacked(b"") == unpacked(b"{}") == {}


def test_a_torn_line_of_a_journal_harms_no_other(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.add("a", Known(1, "tag", 5))
    with open(tmp_path / ".objects", "ab") as file:
        file.write(b'["b", 1, "to')
    journal.add("c", Known(2, "tag"))
    journal.add("a", None)
    assert journal.all() == Journal(tmp_path).all() == {"c": Known(2, "tag")}


def test_a_journal_is_read_by_all_processes_as_it_grows(tmp_path: Path) -> None:
    mine, others = Journal(tmp_path), Journal(tmp_path)
    assert mine.get("a") is None
    others.add("a", Known(1, "x"))
    assert mine.get("a") == Known(1, "x")
    others.rewrite({"b": Known(2, "y")})
    assert mine.all() == {"b": Known(2, "y")}
