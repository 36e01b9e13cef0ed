"""A splitter of open-dataflow gives the children that it gives in its own pipeline, under the row's id."""

import json
from pathlib import Path

import pytest

from dataflow_assets_tests.opendcai.beside import Case, ours, theirs

pytest.importorskip("dataflow", reason="open-dataflow is not installed")
pytest.importorskip("chonkie", reason="the splitter's own package is not installed")


def test_the_chunks_are_those_of_its_own_pipeline(minilm_folder: Path, tmp_path: Path):
    for name, words in {"a": 120, "b": 7}.items():
        (tmp_path / f"{name}.txt").write_text(" ".join(f"{name}{n}" for n in range(words)), encoding="utf-8")
    source = tmp_path / "paths.jsonl"
    source.write_text("".join(json.dumps({"text_path": str(tmp_path / f"{n}.txt")}) + "\n" for n in "ab"))
    init = {"chunk_size": 64, "chunk_overlap": 4, "tokenizer_name": str(minilm_folder)}
    case = Case("KBCChunkGenerator", {"output_key": "chunk"}, init, {"columns": {"chunk": "string"}})
    made = ours(tmp_path, source, {"chunks": case})["chunks"]
    assert made == theirs(tmp_path, source, case)
    assert len(made) > 3
    file = next(tmp_path.glob("dataflow_data/p/p_step1/*.jsonl"))
    ids = [json.loads(line)["row_id"] for line in file.read_text().splitlines()]
    assert ids[:2] == ["paths:1/0", "paths:1/1"] and ids[-1] == "paths:2/0"
