"""Profiles of a pipeline's steps: made with the batches, kept beside them, made again where they are gone."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dataflow_assets.batch import table_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.profiles import Profile, profile_of, step_summary
from dataflow_assets.profiles.making import profile_of_rows
from dataflow_assets.profiles.profiler import Profiler
from dataflow_assets_tests.walk import pipeline, rows, walk

STEPS = [{"name": "plain", "type": "strip_html"}, {"name": "tidy", "type": "normalize_whitespace"}]
TEXTS = [f"<p>Text number {number} of   the   <b>sample</b> & more.</p>" for number in range(25)]


def exclamations(row: dict) -> int:
    """An own measure."""
    return str(row["text"]).count("!")


def broken(row: dict) -> float:
    """An own measure that raises on every row."""
    return row["txt"]


def test_an_own_measure_that_raises_is_told_once_a_step(tmp_path: Path, caplog) -> None:
    made(tmp_path, profile={"measures": {"broken": f"{__name__}:broken"}})
    told = [record.getMessage() for record in caplog.records if "own measure" in record.getMessage()]
    expected = r"the own measure 'broken' raised on row 'in:\d+' of p_step{}, which .*: KeyError: 'txt'"
    assert len(told) == 3
    for place, message in enumerate(told):
        assert re.fullmatch(expected.format(place), message)


def made(folder: Path, **fields: object) -> PipelineWork:
    source = folder / "in.jsonl"
    source.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    return walk(pipeline(folder, source, *STEPS, batch_rows=10, **fields))


def files(work: PipelineWork, step: str) -> list[Path]:
    return sorted((work.folder_of(step).path / "_profiles").glob("*.profile"))


@pytest.mark.parametrize("step", ["source", "plain", "tidy"])
def test_each_batch_has_a_profile_that_adds_up_to_that_of_all_rows(tmp_path: Path, step: str) -> None:
    work = made(tmp_path)
    assert [file.name for file in files(work, step)] == [f"in_b0000{n}.profile" for n in range(3)]
    found = rows(work, step)
    table = table_of(
        {name: [row[name] for row in found] for name in found[0]}, {n: "string" for n in found[0]}
    )
    profiler = work.profiler(step)
    assert profiler is not None
    whole = profile_of_rows(table, "all", profiler.how).as_json()
    profile = profile_of(work, step).as_json()
    assert profile["columns"]["text"]["measures"] == whole["columns"]["text"]["measures"]
    assert profile["rows"] == 25


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:300])])
def test_a_profile_that_is_gone_or_damaged_is_made_again(tmp_path: Path, damage) -> None:
    work = made(tmp_path)
    before = profile_of(work, "plain").as_json()
    damage(files(work, "plain")[1])
    assert profile_of(work, "plain").as_json() == before
    assert len(files(work, "plain")) == 3


@pytest.mark.parametrize("rules", [[], ["label_conflicts(text, kind) <= 0"]])
def test_rows_that_a_step_left_as_they_were_are_measured_again_only_for_rules_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: list[str]
) -> None:
    measured: list[str] = []

    def counted(table: pa.Table, batch: str, *rest: Any) -> Profile:
        measured.append(batch)
        return profile_of_rows(table, batch, *rest)

    monkeypatch.setattr("dataflow_assets.profiles.profiler.profile_of_rows", counted)
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": "Plain text that has no markup.", "kind": "a"}))
    again = {"name": "again", "type": "strip_html", "expect": rules}
    work = walk(pipeline(tmp_path, source, *STEPS[:1], again))
    assert len(measured) == 1 + len(rules)  # the source, for `plain` too
    assert profile_of(work, "again").as_json() == profile_of(work, "source").as_json()


def test_a_profile_of_other_rows_counts_as_none(tmp_path: Path) -> None:
    work = made(tmp_path)
    before = profile_of(work, "plain").as_json()
    for source, plain in zip(files(work, "source"), files(work, "plain"), strict=True):
        plain.write_bytes(source.read_bytes())
    assert profile_of(work, "plain").as_json() == before


def test_batches_that_go_take_their_profiles_with_them(tmp_path: Path) -> None:
    work = made(tmp_path)
    work.remove_batches_but({"in_b00000"})
    assert [file.name for file in files(work, "tidy")] == ["in_b00000.profile"]


def test_a_pipeline_without_profiles_has_none(tmp_path: Path) -> None:
    work = made(tmp_path, profile=False)
    assert files(work, "tidy") == []
    assert step_summary(work, "tidy") is None
    with pytest.raises(ConfigError, match="has `profile: false`"):
        profile_of(work, "tidy")


def test_own_measures_are_named_by_the_pipeline(tmp_path: Path) -> None:
    measure = "dataflow_assets_tests.profiles.test_of_steps:exclamations"
    work = made(tmp_path, profile={"measures": {"exclamations": measure}})
    assert profile_of(work, "tidy").as_json()["columns"]["exclamations"]["measures"]["value"]["max"] == 0


@pytest.mark.parametrize("path", ["nowhere:at_all", "json:nothing", "json:__name__", "no colon"])
def test_a_measure_that_is_no_function_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="measure 'mine'"):
        made(tmp_path, profile={"measures": {"mine": path}})


def test_a_profile_that_cannot_be_made_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no profile today")

    monkeypatch.setattr("dataflow_assets.profiles.profiler.profile_of_rows", broken)
    with caplog.at_level(logging.WARNING):
        work = made(tmp_path)
    assert len(rows(work, "tidy")) == 25
    assert "no profile of batch 'in_b00000'" in caplog.text


def test_the_summary_says_what_the_step_did(tmp_path: Path) -> None:
    work = made(tmp_path)
    summary = step_summary(work, "plain")
    assert summary is not None
    assert "Measured on all 25 rows" in summary
    assert "| html_remains | 4 → 0 |" in summary
    assert "![histogram of chars](data:image/png;base64,iVBOR" in summary


def test_the_summary_is_of_stored_profiles_and_reads_no_rows(tmp_path: Path) -> None:
    work = made(tmp_path)
    files(work, "plain")[0].unlink()
    summary = step_summary(work, "plain")
    assert summary is not None
    assert summary.startswith("Of 2 of 3 batches.")
    assert len(files(work, "plain")) == 2


def test_each_profile_is_read_once_for_the_summaries_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, read = made(tmp_path), []
    stored = Profiler.stored
    monkeypatch.setattr(Profiler, "stored", lambda *given: read.append(given) or stored(*given))
    assert all(step_summary(work, step) for step in ("source", "plain", "tidy"))
    assert len(read) == 3 * 3


def test_a_batch_that_was_made_again_with_other_rows_is_measured_again(tmp_path: Path) -> None:
    work = made(tmp_path)
    (tmp_path / "in.jsonl").write_text("\n".join(json.dumps({"text": f"{text}!"}) for text in TEXTS))
    walk(work.pipeline)
    chars = profile_of(work, "tidy").as_json()["columns"]["text"]["measures"]["chars"]
    assert chars["max"] == max(len(row["text"]) for row in rows(work, "tidy"))


def test_a_summary_that_cannot_be_made_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    work = made(tmp_path)
    monkeypatch.setattr("dataflow_assets.profiles.of_steps.profile_markdown", lambda *_: 1 / 0)
    with caplog.at_level(logging.WARNING):
        assert step_summary(work, "plain") is None
    assert "no summary of step 'plain'" in caplog.text
