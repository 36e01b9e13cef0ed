"""A pipeline with no batch size: one file a step, `<prefix>_step<N>.<ext>`."""

import json

from dataflow_assets_tests.walk import UNCHANGED, pipeline, rows, walk

DEDUP = {"name": "unique", "type": "drop_duplicates", "params": {"columns": ["text"]}}


def _folder(tmp_path, **files):
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for name, texts in files.items():
        lines = [json.dumps({"text": text}) for text in texts]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return folder


def test_each_step_is_one_file_with_the_rows_of_all_sources(tmp_path):
    source = _folder(tmp_path, a=["x", "y"], b=["x", "z"])
    work = walk(pipeline(tmp_path, source, UNCHANGED, DEDUP, batch_rows=None))
    names = sorted(path.name for path in work.layout.folder.glob("*.jsonl"))
    assert names == ["p_step0.jsonl", "p_step1.jsonl", "p_step2.jsonl"]
    assert [row["text"] for row in rows(work, "unique")] == ["x", "y", "z"]


def test_another_format_moves_the_file(tmp_path):
    source = _folder(tmp_path, a=["x", "y"])
    walk(pipeline(tmp_path, source, batch_rows=None))
    work = walk(pipeline(tmp_path, source, batch_rows=None, format="parquet"))
    assert sorted(path.name for path in work.layout.folder.glob("p_step1.*")) == ["p_step1.parquet"]
    assert work.folder_of("kept").record("all").generation == 2


def test_going_to_batches_and_back_leaves_no_other_files(tmp_path):
    source = _folder(tmp_path, a=["x", "y", "z"])
    walk(pipeline(tmp_path, source, batch_rows=None))
    batched = walk(pipeline(tmp_path, source, batch_rows=2))
    batched.remove_batches_but(set(batched.known_manifest().batches))
    assert not list(batched.layout.folder.glob("*.jsonl"))
    whole = walk(pipeline(tmp_path, source, batch_rows=None))
    whole.remove_batches_but({"all"})
    assert not list(whole.folder_of("kept").path.glob("*.jsonl"))


def test_a_changed_file_is_read_again(tmp_path):
    walk(pipeline(tmp_path, _folder(tmp_path, a=["x"], b=["y"]), batch_rows=None))
    work = walk(pipeline(tmp_path, _folder(tmp_path, b=["q", "r"]), batch_rows=None))
    assert [row["text"] for row in rows(work, "kept")] == ["x", "q", "r"]
