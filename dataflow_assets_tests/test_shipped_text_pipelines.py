"""The pipelines `text_pretrain_en`, `text_pretrain_zh` and `legal_zh` on their samples."""

import gzip
import json
import re
from pathlib import Path

import pytest

import dataflow_assets
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets_tests.walk import Rows, rows, walk

PIPELINES = Path(dataflow_assets.__file__).parent / "pipelines"
COUNTS = {
    "text_pretrain_en": {
        "source": 78,
        "good_urls": 76,
        "main_text": 76,
        "text": 76,
        "tidy": 76,
        "english": 73,
        "gopher_repetition": 70,
        "gopher_quality": 52,
        "c4": 52,
        "fineweb": 51,
        "distinct": 46,
        "without_pii": 46,
    },
    "text_pretrain_zh": {
        "source": 52,
        "good_urls": 50,
        "main_text": 50,
        "text": 50,
        "tidy": 50,
        "chinese": 37,
        "distinct": 32,
        "gopher_repetition": 30,
        "fineweb": 30,
        "gopher_quality": 26,
        "repaired": 26,
        "without_pii": 26,
    },
    "legal_zh": {
        "source": 24,
        "repaired": 24,
        "without_page_numbers": 24,
        "paragraphs": 24,
        "tidy": 24,
        "without_parties": 24,
        "without_numbers": 24,
        "whole": 21,
        "distinct": 20,
        "terms": 20,
    },
}


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Rows]]:
    """The kept rows of each step of each pipeline."""
    found = {}
    for name in COUNTS:
        pipeline = load_pipeline(PIPELINES / f"{name}.yaml")
        pipeline = pipeline.with_changes(root=str(tmp_path_factory.mktemp("data")))
        work = walk(pipeline)
        found[name] = {step: rows(work, step) for step in COUNTS[name]}
    return found


@pytest.mark.parametrize("name", COUNTS)
def test_each_step_keeps_what_it_should(held: dict[str, dict[str, Rows]], name: str) -> None:
    assert {step: len(kept) for step, kept in held[name].items()} == COUNTS[name]


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("text_pretrain_en", ["jane.doe@", "john.smith@", "ask 8.8.8.8"]),
        ("text_pretrain_zh", ["zhang.wei@", "13912345678", "li.na@", "服务器地址为 8.8.8.8"]),
    ],
)
def test_planted_personal_data_comes_up_to_the_last_step_and_not_out_of_it(
    held: dict[str, dict[str, Rows]], name: str, planted: list[str]
) -> None:
    steps = held[name]
    before = "\n".join(str(row["text"]) for row in list(steps.values())[-2])
    after = "\n".join(str(row["text"]) for row in steps["without_pii"])
    assert [value for value in planted if value not in before] == []
    assert [value for value in planted if value in after] == []
    assert "<EMAIL>" in after


@pytest.mark.parametrize("name", ["text_pretrain_en", "text_pretrain_zh"])
def test_a_page_and_its_mirror_are_one_and_the_earlier_stays(
    held: dict[str, dict[str, Rows]], name: str
) -> None:
    with gzip.open(PIPELINES / "data" / f"{name}_sample.jsonl.gz", "rt", encoding="utf-8") as file:
        places = {json.loads(line)["url"]: number for number, line in enumerate(file)}
    kept = {str(row["url"]) for row in held[name]["distinct"]}
    pairs = [
        (mirror, mirror.replace("mirror.example.org", "debian-handbook.info"))
        for mirror in places
        if "mirror.example.org" in mirror
    ]
    dropped = [pair for pair in pairs if not kept.issuperset(pair) and not kept.isdisjoint(pair)]
    assert dropped
    for pair in dropped:
        [stays] = kept.intersection(pair)
        assert places[stays] == min(places[url] for url in pair)


def test_no_name_and_no_number_of_a_party_is_left_in_a_judgment(held: dict[str, dict[str, Rows]]) -> None:
    introduced = re.compile("(?:原告|被告|委托诉讼代理人)：([\u4e00-\u9fff]{2,3})，")
    names = {name for row in held["legal_zh"]["tidy"] for name in introduced.findall(str(row["text"]))}
    assert len(names) > 60
    for row in held["legal_zh"]["terms"]:
        text = str(row["text"])
        assert not re.search(r"公民身份号码[0-9０-９]|联系电话[0-9０-９]", text)
        parties = text.partition("审判员")[0]
        assert [name for name in names if name in parties] == []


def test_judgments_out_of_pdf_and_text_are_whole(held: dict[str, dict[str, Rows]]) -> None:
    final = held["legal_zh"]["terms"]
    assert {Path(str(row["path"])).suffix for row in final} == {".pdf", ".txt"}
    for row in final:
        text = str(row["text"])
        assert "民事判决书" in text and "判决如下：" in text and "第1页" not in text
        assert "委托诉讼代理人（受当事人委托代为诉讼的人）" in text
