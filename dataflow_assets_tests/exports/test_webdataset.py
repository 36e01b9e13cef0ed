import tarfile
from pathlib import Path

import pytest

from dataflow_assets.exports import webdataset as writer
from dataflow_assets_tests.exports.conftest import Exported
from dataflow_assets_tests.torch.made_steps import texts

wds = pytest.importorskip("webdataset")


def read(folder: Path) -> list[dict]:
    shards = [str(path) for path in sorted(folder.glob("*.tar"))]
    return [sample["json"] for sample in wds.WebDataset(shards, shardshuffle=False).decode()]


def test_webdataset_reads_the_rows_in_order(exported: Exported):
    rows = texts(30)
    assert read(exported(rows, "webdataset")) == rows


def test_row_ids_come_when_asked_for(exported: Exported):
    assert read(exported(texts(3), "webdataset", with_row_id=True))[2]["row_id"] == "in:3"


def test_many_rows_are_several_shards(exported: Exported, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer, "_SHARD_BYTES", 500)
    folder = exported(texts(30), "webdataset")
    assert len(list(folder.glob("shard-*.tar"))) > 3
    assert read(folder) == texts(30)


def test_a_member_says_nothing_of_the_machine(exported: Exported):
    with tarfile.open(exported(texts(2), "webdataset") / "shard-000000.tar") as shard:
        members = shard.getmembers()
    assert [member.name for member in members] == ["000000000.json", "000000001.json"]
    assert {(member.mtime, member.uid, member.gid, member.uname, member.gname) for member in members} == {
        (0, 0, 0, "", "")
    }
