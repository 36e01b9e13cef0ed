"""`filter_sections`."""

import pytest

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import applied, ids, table

SECTIONS = [
    {"name": "facts", "any_of": ["经审理查明", "本院查明"]},
    {"name": "reasons", "any_of": ["本院认为"]},
    {"name": "verdict", "any_of": ["判决如下"]},
]
WHOLE = "原告诉称借款。本院查明：借款属实。本院认为：应当偿还。判决如下：偿还。"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WHOLE, None),
        ("", "missing_facts"),
        ("本院查明：属实。判决如下：偿还。", "missing_reasons"),
        ("本院查明：属实。本院认为：应当偿还。", "missing_verdict"),
        ("本院认为：应当偿还。本院查明：属实。判决如下：偿还。", "misplaced_reasons"),
        (WHOLE * 1000, None),
    ],
)
def test_a_document_without_a_section_is_rejected_by_its_name(text: str, reason: str | None) -> None:
    outcome = applied("filter_sections", table(text=[text]), {"sections": SECTIONS})
    if reason is None:
        assert outcome.kept["text"].to_pylist() == [text]
    else:
        assert outcome.rejected is not None and outcome.rejected["reject_reason"].to_pylist() == [reason]


def test_the_order_can_be_left_free() -> None:
    texts = ["判决如下。本院认为。经审理查明。"]
    params = {"sections": SECTIONS, "ordered": False}
    assert ids(applied("filter_sections", table(text=texts), params).kept) == ["r0"]


@pytest.mark.parametrize(
    "sections",
    [[], [{"name": "a", "any_of": []}], [{"name": "a", "any_of": [""]}], [SECTIONS[0], SECTIONS[0]]],
)
def test_sections_that_make_no_sense_are_refused(sections: list) -> None:
    with pytest.raises(ConfigError):
        build_operator("filter_sections", {"sections": sections})
