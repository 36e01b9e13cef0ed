"""The shipped pipeline `sft_select`, by the real command on its sample, with small models."""

import json
from pathlib import Path

import pytest

from dataflow_assets_tests.conftest import Command


def rows_of(folder: Path, step: int, rows: str = "") -> list[dict]:
    files = sorted((folder / f"sft_select_step{step}" / rows).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_what_stays_is_instructive_within_the_quota_and_diverse(
    tmp_path: Path,
    command_here: Command,
    tiny_gpt2: Path,
    minilm_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("DATAFLOW_SCORE_MODEL", str(tiny_gpt2))
    monkeypatch.setenv("DATAFLOW_EMBED_MODEL", str(minilm_folder))
    finished = command_here(tmp_path, "run", "sft_select")
    assert finished.code == 0, finished
    folder = tmp_path / "dataflow_data" / "sft_select"
    _assert_each_step_drops_what_it_should(folder)
    kept = rows_of(folder, 8)
    assert all(0 < row["ifd"] <= 1 for row in kept)
    categories = [row["category"] for row in kept]
    assert max(map(categories.count, categories)) <= 12 and len(set(categories)) == 5
    assert kept[0]["messages"][0]["role"] == "user" and "embedding" not in kept[0]


def _assert_each_step_drops_what_it_should(folder: Path) -> None:
    counts = [len(rows_of(folder, step)) for step in range(9)]
    reasons = [{row["reject_reason"] for row in rows_of(folder, step, "_rejected")} for step in range(9)]
    assert counts[0] == 100 and counts[8] == counts[7] > 10
    assert reasons[1] == {"too_short"} and reasons[3] == {"too_high"} and reasons[4] == {"over_quota"}
    assert reasons[6] <= {"semantic_duplicate"} and reasons[7] == {"not_selected"}
    assert counts[7] == -(-counts[6] * 8 // 10)


def test_without_the_packages_nothing_is_run(
    tmp_path: Path, command_here: Command, monkeypatch: pytest.MonkeyPatch
):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else found(name))
    finished = command_here(tmp_path, "run", "sft_select")
    assert finished.code == 2 and "dataflow_assets[models]" in finished.err
    assert not (tmp_path / "dataflow_data").exists()
    assert command_here(tmp_path, "list").code == 0
