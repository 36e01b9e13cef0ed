"""`redact_parties`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets_tests.operators.sample_tables import edited


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("原告：张伟，男，汉族。", "原告：张某，男，汉族。"),
        (
            "原告：张伟，男。被告：李小红，女。原告张伟与被告李小红民间借贷纠纷一案",
            "原告：张某，男。被告：李某，女。原告张某与被告李某民间借贷纠纷一案",
        ),
        ("原告张伟诉被告张小芳", "原告张某1诉被告张某2"),
        ("被告（反诉原告）：欧阳娜娜，女。欧阳娜娜辩称", "被告（反诉原告）：欧阳某，女。欧阳某辩称"),
        ("上诉人（原审被告）买买提·吐尔逊，男", "上诉人（原审被告）买某，男"),
        ("原告：北京某某科技有限公司。", "原告：北京某某科技有限公司。"),
        ("被告应当偿还借款。原告诉称属实。", "被告应当偿还借款。原告诉称属实。"),
        ("法定代表人：王强，经理。后王强未到庭。", "法定代表人：王某，经理。后王某未到庭。"),
        ("", ""),
        ("The plaintiff 原告 left.", "The plaintiff 原告 left."),
    ],
)
def test_names_of_parties_are_masked(text: str, expected: str) -> None:
    assert edited("redact_parties", [text]) == [expected]


def test_the_roles_can_be_given() -> None:
    text = "借款人：张伟。原告：李强。"
    assert edited("redact_parties", [text], {"roles": ["借款人"]}) == ["借款人：张某。原告：李强。"]


NAMES = st.builds(
    "{}{}".format, st.sampled_from("张王李赵欧"), st.text(alphabet="小明红军伟娜", min_size=1, max_size=2)
)
ROLES = st.sampled_from(["原告", "被告", "第三人", "法定代表人", "上诉人（原审原告）"])


@given(st.lists(st.tuples(ROLES, NAMES), min_size=1, max_size=6, unique_by=lambda pair: pair[1]))
def test_no_name_is_left_and_different_persons_stay_different(persons: list[tuple[str, str]]) -> None:
    head = "。".join(f"{role}：{name}，汉族" for role, name in persons)
    body = "，".join(name for _, name in persons)
    masked = edited("redact_parties", [f"{head}。\n{body}"])[0]
    assert not any(name in masked for _, name in persons)
    assert len(set(masked.rpartition("\n")[2].split("，"))) == len(persons)
    assert edited("redact_parties", [masked]) == [masked]
