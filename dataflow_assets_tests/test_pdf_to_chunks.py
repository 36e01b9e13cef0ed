"""The pipeline `pdf_to_chunks` on its sample: every sentence of the pages comes out, with its page."""

import json
from pathlib import Path

import pytest

from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets_tests import pdf_sample
from dataflow_assets_tests.walk import Rows, rows, walk

PIPELINE = pdf_sample.DATA.parent / "pdf_to_chunks.yaml"


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """The kept rows of the source and of each step."""
    root = tmp_path_factory.mktemp("data")
    pipeline = load_pipeline(PIPELINE).with_changes(root=str(root))
    work = walk(pipeline)
    return {name: rows(work, name) for name in ["source", *(step.name for step in pipeline.steps)]}


def without_spaces(text: str) -> str:
    return "".join(text.split())


def test_the_sample_is_what_its_script_makes():
    assert {name: (pdf_sample.DATA / name).read_bytes() for name in pdf_sample.made()} == pdf_sample.made()


def test_every_step_keeps_what_it_should(held: dict[str, Rows]):
    counts = {name: len(found) for name, found in held.items()}
    assert counts == {
        "source": 5,
        "without_page_numbers": 5,
        "joined": 5,
        "tidy": 5,
        "chunks": 20,
        "long_enough": 20,
        "unique": 20,
    }


def test_the_pages_hold_the_texts_that_they_were_made_of(held: dict[str, Rows]):
    lines = (pdf_sample.DATA / "text2qa_sample.jsonl").read_text("utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    pages = without_spaces("".join(str(row["text"]) for row in held["tidy"]))
    for rows_of_language in pdf_sample.ROWS.values():
        for number in rows_of_language:
            assert without_spaces(texts[number]) in pages


def test_chunks_know_their_file_and_page_and_are_parts_of_it(held: dict[str, Rows]):
    pages = {(row["path"], row["page"]): str(row["text"]) for row in held["tidy"]}
    for chunk in held["unique"]:
        text = pages[chunk["path"], chunk["page"]]
        assert text[int(str(chunk["start"])) : int(str(chunk["end"]))] == chunk["text"]
        assert 40 <= len(str(chunk["text"])) <= 600
    files = sorted({Path(str(row["path"])).name for row in held["unique"]})
    assert files == ["pdf_sample_en.pdf", "pdf_sample_zh.pdf"]


def test_no_page_number_is_left_and_sentences_are_whole(held: dict[str, Rows]):
    texts = [str(row["text"]) for row in held["unique"]]
    assert not any("\n1 / 3" in text or text.startswith("1 / 3") for text in texts)
    assert any(
        "Debian developers will find ways to embrace those changes and to continue" in text for text in texts
    )
    assert any("Postfix 只接受来自机器本身的电子邮件；通常会添加本地网络。" in text for text in texts)
