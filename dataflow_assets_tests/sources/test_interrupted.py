"""A reading that is stopped, killed or fails goes on after the pieces that are done."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
import xxhash

from dataflow_assets.control import StopFlag
from dataflow_assets.errors import SourceError, Stopped
from dataflow_assets.pipeline import Pipeline
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.sources import file_pieces
from dataflow_assets_tests.crash.command import environment
from dataflow_assets_tests.sources.reading import written
from dataflow_assets_tests.walk import UNCHANGED, rows, walk

KILLED = """
import os, signal
from dataflow_assets.control import StopFlag
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets_tests.sources.test_interrupted import pipeline
import dataflow_assets.sources.ingest as ingest, pathlib, sys
ingest._NOTE_EVERY_S = -1.0
reading = PipelineWork(pipeline(pathlib.Path(sys.argv[1]))).ingest(print)
for number, _ in enumerate(reading.commit_all(StopFlag()), 1):
    if number == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def pipeline(tmp_path: Path) -> Pipeline:
    """Five files of 30 rows, three batches each."""
    return Pipeline(
        name="p",
        source={"path": str(tmp_path / "in")},
        batch_rows=10,
        workers=1,
        root=str(tmp_path / "data"),
        steps=[UNCHANGED],
    )


@pytest.fixture
def five_files(tmp_path) -> Path:
    for name in "abcde":
        lines = [json.dumps({"n": f"{name}{n}"}) for n in range(30)]
        written(tmp_path, f"in/{name}.jsonl", "\n".join(lines))
    return tmp_path


@pytest.fixture
def read_files(monkeypatch) -> list[str]:
    """The names of the files that are read, as they are begun."""
    seen: list[str] = []
    read = file_pieces.read_file
    monkeypatch.setattr(
        file_pieces, "read_file", lambda file, *rest: seen.append(file.name[-7:]) or read(file, *rest)
    )
    return seen


def numbers(folder: Path) -> list[object]:
    return [row["n"] for row in rows(walk(pipeline(folder)), "kept")]


EXPECTED = [f"{name}{n}" for name in "abcde" for n in range(30)]


@pytest.mark.parametrize("batches", [4, 10])
def test_after_a_kill_at_any_batch_what_is_done_is_not_read_again(five_files, read_files, batches):
    command = [sys.executable, "-c", KILLED, str(five_files), str(batches)]
    killed = subprocess.run(command, env=environment(), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (five_files / "data/p/manifest.json").exists()
    assert numbers(five_files) == EXPECTED
    done = max(0, (batches - 2) // 3)
    assert read_files == [f"{name}.jsonl" for name in "abcde"][done:]
    assert not (five_files / "data/p/reading.json").exists()


def test_a_stop_is_noted_at_once(five_files, read_files):
    flag = StopFlag()
    with pytest.raises(Stopped):
        for number, _ in enumerate(PipelineWork(pipeline(five_files)).ingest(print).commit_all(flag), 1):
            if number == 7:
                flag.signal = signal.SIGINT
    assert [
        file["name"][-7:] for file in json.loads((five_files / "data/p/reading.json").read_text())["files"]
    ] == [
        "a.jsonl",
        "b.jsonl",
    ]
    read_files.clear()
    assert numbers(five_files) == EXPECTED
    assert read_files == ["c.jsonl", "d.jsonl", "e.jsonl"]


def test_a_piece_whose_new_batches_were_not_committed_is_not_taken_for_done(five_files, read_files):
    walk(pipeline(five_files))
    written(five_files, "in/a.jsonl", "\n".join(json.dumps({"n": f"x{n}"}) for n in range(30)))
    flag = StopFlag()
    flag.signal = signal.SIGTERM
    with pytest.raises(Stopped):
        list(PipelineWork(pipeline(five_files)).ingest(print).commit_all(flag))
    read_files.clear()
    assert numbers(five_files) == [f"x{n}" for n in range(30)] + EXPECTED[30:]
    assert read_files == ["a.jsonl"]


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_file_that_is_put_back_after_its_new_rows_were_half_read_is_read_again(five_files, batches):
    walk(pipeline(five_files))
    before = (five_files / "in/a.jsonl").read_bytes()
    written(five_files, "in/a.jsonl", "\n".join(json.dumps({"n": f"x{n}"}) for n in range(30)))
    flag = StopFlag()
    with pytest.raises(Stopped):
        for number, _ in enumerate(PipelineWork(pipeline(five_files)).ingest(print).commit_all(flag), 1):
            if number == batches:
                flag.signal = signal.SIGTERM
    written(five_files, "in/a.jsonl", before)
    assert not PipelineWork(pipeline(five_files)).source_is_current()
    assert numbers(five_files) == EXPECTED
    assert PipelineWork(pipeline(five_files)).source_is_current()


def test_a_manifest_without_fingerprints_is_read_again_and_nothing_is_made_anew(five_files):
    walk(pipeline(five_files))
    manifest = five_files / "data/p/manifest.json"
    body = json.loads(manifest.read_text())
    for file in body["files"]:
        file["batches"] = list(file["batches"])
    del body["checksum"]
    body = {**body, "version": 2}
    checksum = xxhash.xxh3_64_hexdigest(
        orjson.dumps({key: value for key, value in body.items()}, option=orjson.OPT_SORT_KEYS)
    )
    manifest.write_text(json.dumps({**body, "checksum": checksum}))
    records = {path: path.read_bytes() for path in (five_files / "data/p/p_step0/_commits").iterdir()}
    assert numbers(five_files) == EXPECTED
    assert {path: path.read_bytes() for path in records} == records
    assert PipelineWork(pipeline(five_files)).source_is_current()


def test_a_file_that_cannot_be_read_keeps_those_before_it(five_files, read_files):
    written(five_files, "in/d.jsonl", b"\xff\xfe{\x00")
    with pytest.raises(SourceError, match="byte order mark"):
        walk(pipeline(five_files))
    written(five_files, "in/d.jsonl", "\n".join(json.dumps({"n": f"d{n}"}) for n in range(30)))
    read_files.clear()
    assert numbers(five_files) == EXPECTED
    assert read_files == ["c.jsonl", "d.jsonl", "e.jsonl"]  # the last batches of c were in hand


def test_other_settings_make_what_was_done_void(five_files, read_files):
    flag = StopFlag()
    with pytest.raises(Stopped):
        for _ in PipelineWork(pipeline(five_files)).ingest(print).commit_all(flag):
            flag.signal = signal.SIGINT
    read_files.clear()
    other = pipeline(five_files).with_changes(batch_rows=15)
    assert len(rows(walk(other), "kept")) == 150
    assert len(read_files) == 5
