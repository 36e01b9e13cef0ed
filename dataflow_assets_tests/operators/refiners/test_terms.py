from pathlib import Path

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import edited

TERMS = {"合同": "协议", "合同法": "民法典合同编", "GPU": "graphics processor", "C++": "C plus plus"}
FILES = {
    "terms.yaml": "原告: 起诉的一方\n被告: [应诉的一方, 被诉的一方]\n",
    "terms.csv": "\ufeffterm,text,note\n原告,起诉的一方,x\n被告,应诉的一方,\n被告,被诉的一方,\n",
    "terms.jsonl": '{"term": "原告", "text": "起诉的一方"}\n'
    '{"term": "被告", "text": ["应诉的一方", "被诉的一方"]}\n\n',
}


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("合同法与合同", "民法典合同编与协议"),
        ("GPUs GPU-1 theGPU 用GPU算", "GPUs graphics processor-1 theGPU 用graphics processor算"),
        ("C++ and C++11 C", "C plus plus and C plus plus11 C"),
        ("gpu", "gpu"),
        ("", ""),
    ],
)
def test_the_longest_term_is_replaced_and_never_within_an_ascii_word(text: str, replaced: str):
    assert edited("augment_terms", [text], {"terms": TERMS}) == [replaced]


def test_case_can_be_ignored():
    params = {"terms": {"gpu": "x"}, "ignore_case": True}
    assert edited("augment_terms", ["GPU Gpu İGPU"], params) == ["x x İx"]


def test_an_explanation_is_put_once_behind_its_term():
    params = {"terms": {"原告": "起诉的一方"}, "mode": "annotate", "first_only": True}
    once = edited("augment_terms", ["原告称，原告"], params)
    assert once == ["原告（起诉的一方）称，原告"]
    assert edited("augment_terms", once, params) == once


def test_the_rate_holds_over_many_places_and_the_seed_changes_them():
    texts = [f"{number} 合同 合同" for number in range(500)]
    changed = {
        seed: edited("augment_terms", texts, {"terms": TERMS, "rate": 0.3, "seed": seed}) for seed in (0, 1)
    }
    count = sum(text.count("协议") for text in changed[0])
    assert 240 < count < 360
    assert changed[0] != changed[1]
    assert edited("augment_terms", texts, {"terms": TERMS, "rate": 0.0}) == texts


def test_a_row_gives_the_same_wherever_it_stands():
    texts = [f"{number} 合同 GPU" for number in range(40)]
    params = {"terms": {"合同": ["协议", "契约", "约定"], "GPU": "x"}, "rate": 0.5}
    together = edited("augment_terms", texts, params)
    backwards = edited("augment_terms", texts[::-1], params)[::-1]
    assert together == backwards == [edited("augment_terms", [text], params)[0] for text in texts]
    assert {"协议", "契约", "约定"} <= {text.split()[1] for text in together}


@pytest.mark.parametrize("name", FILES)
def test_glossaries_are_read_from_three_kinds_of_file(tmp_path: Path, name: str):
    (tmp_path / name).write_text(FILES[name], "utf-8")
    operator = build_operator("augment_terms", {"glossary": name}, tmp_path)
    terms = {"原告": ["起诉的一方"], "被告": ["应诉的一方", "被诉的一方"]}
    assert operator.identity() == {"terms": terms}


def test_another_content_of_the_file_is_another_operator(tmp_path: Path):
    file = tmp_path / "terms.csv"
    fingerprints = set()
    for text in ("a", "b"):
        file.write_text(f"term,text\n原告,{text}\n", "utf-8")
        fingerprints.add(operator_fingerprint(build_operator("augment_terms", {"glossary": str(file)})))
    assert len(fingerprints) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "term,meaning\nx,y\n", "expected the columns term and text"),
        ("a.csv", "term,text\nx\n", "a.csv:2: the line has too few columns"),
        ("a.csv", "term,text\n", "has no term"),
        ("a.jsonl", '{"term": "x", "text": "y"}\n{"term": 1}\n', "a.jsonl:2: expected"),
        ("a.jsonl", "{\n", "a.jsonl:1: no JSON"),
        ("a.yaml", "x: 1\n", "a.yaml"),
        ("a.yaml", "' ': y\n", "is blank"),
        ("a.txt", "x", "ends in .yaml"),
    ],
)
def test_mistakes_in_a_glossary_are_told_at_load(tmp_path: Path, name: str, content: str, message: str):
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(ConfigError, match=message):
        build_operator("augment_terms", {"glossary": name}, tmp_path)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "terms or glossary"),
        ({"terms": TERMS, "glossary": "a.csv"}, "terms or glossary"),
        ({"glossary": "missing.csv"}, "cannot be read"),
        ({"terms": {}}, "has no term"),
        ({"terms": TERMS, "annotation": "()"}, "expected {text}"),
        ({"terms": TERMS, "rate": 1.5}, "less than or equal to 1"),
    ],
)
def test_mistakes_in_the_parameters_are_told_at_load(params: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        build_operator("augment_terms", params)
