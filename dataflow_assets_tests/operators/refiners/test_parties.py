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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "原告王芳诉称，被告李四借款。王芳提交了借条，李四未还款。",
            "原告王某诉称，被告李某借款。王某提交了借条，李某未还款。",
        ),
        (
            "上诉人张三因与被上诉人李四民间借贷纠纷一案。张三称其已还款。",
            "上诉人张某因与被上诉人李某民间借贷纠纷一案。张某称其已还款。",
        ),
        (
            "原告：王芳，女。被告：李四，男。\n原告王芳诉称，被告李四借款。被告李四辩称，已还款。",
            "原告：王某，女。被告：李某，男。\n原告王某诉称，被告李某借款。被告李某辩称，已还款。",
        ),
        ("原告李永和诉称。李永和与被告张有为，男", "原告李某诉称。李某与被告张某，男"),
        ("原告李永和被告张有才之间", "原告李某和被告张某之间"),
        ("原告张三、李四、王五与被告赵六、钱七", "原告张某、李某、王某与被告赵某、钱某"),
        ("原告：高峰，男。高峰称。", "原告：高某，男。高某称。"),
        ("被告何强辩称，原告于伟诉称", "被告何某辩称，原告于某诉称"),
    ],
)
def test_what_stands_behind_a_name_is_no_part_of_it(text: str, expected: str) -> None:
    assert edited("redact_parties", [text]) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "原告和被告于2019年结婚。原告与被告系夫妻。",
        "被告应当于本判决生效之日起十日内支付。本院认为，合同应当履行。",
        "被告\n应当于十日内支付。合同应当履行。",
        "被告支付的货款应当返还，未支付的利息另计。",
        "原告申请对笔迹鉴定。原告陈述称，被告从未还款。",
        "被告单位的公司章程，被告公司在北京，被告解除的合同，被告房屋的管理，原告项目因故，",
        "被告曾多次向原告借款，被告常年在外，原告方提出的证据，被告方律师称，被告方认为",
        "原告于次日向被告，被告于当日辩称，被告马上向原告，被告周围的人，原告金额为三元",
        "原告：平安保险股份有限公司。被告东方公司的账户。委托代理人：张律师。原告董事长称",
    ],
)
def test_words_that_begin_as_surnames_do_stay(text: str) -> None:
    assert edited("redact_parties", [text]) == [text]


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
