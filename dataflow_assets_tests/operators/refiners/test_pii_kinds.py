"""The kinds of personal data, one after another, and the cases that other projects got wrong."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_assets.operators import build_operator
from dataflow_assets.operators.refiners.pii.kinds import DETECTORS
from dataflow_assets.operators.refiners.redact import RedactPii
from dataflow_assets.text.check_digits import is_id_card, is_luhn
from dataflow_assets_tests.operators.refiners import pii_measures, pii_samples
from dataflow_assets_tests.operators.sample_tables import CASES, case_rows, edited

ALL_KINDS = list(DETECTORS)


def redactor(**params: object) -> RedactPii:
    built = build_operator("redact_pii", {"kinds": ALL_KINDS, **params})
    assert isinstance(built, RedactPii)
    return built


def tagged(text: str, **params: object) -> str:
    return edited("redact_pii", [text], {"kinds": ALL_KINDS, **params})[0]


@pytest.mark.parametrize(
    ("case", "tags"),
    [("32_id_card_18", {"id_card": "[ID]"}), ("33_phone_digit_boundaries", {"mobile": "[PHONE]"})],
)
def test_the_cases_come_out_exactly(case: str, tags: dict[str, str]):
    expected = json.loads((CASES / case / "expected.json").read_text("utf-8"))
    rows = case_rows(case)
    redacted = edited("redact_pii", [row["text"] for row in rows], {"tags": tags})
    assert redacted == [expected[str(row["id"])] for row in rows]


# What may belong to the number: a group of four before it, a group behind a German number.
_MISJUDGED = {
    "bank_card": ["1200 4479 0116 1435 4257, 3.5", "1200 4571 4115 6368 3622, 3.5"],
    "phone": ["+49 (0)30 065781 12 times", "+49 (0)30 206493 2024 was", "1200 0044 20 2085 5885, 3.5"],
}


@pytest.mark.parametrize("kind", pii_samples.kinds())
def test_samples_are_found_and_nothing_beside_them(kind: str):
    samples = pii_samples.samples(kind)
    operator = redactor()
    wrong = [sample.text for sample in samples if not pii_measures.is_judged_right(operator, kind, sample)]
    assert wrong == _MISJUDGED.get(kind, [])


@pytest.mark.parametrize("kind", pii_samples.kinds())
def test_a_value_beside_itself_is_found_twice_with_one_value(kind: str):
    operator = redactor()
    for value in {sample.value for sample in pii_samples.samples(kind) if sample.value}:
        for between in (" ", "，", " / ", "\n"):
            found = [span.value for span in operator.spans(f"{value}{between}{value}") if span.kind == kind]
            assert len(found) == 2, value
            assert found[0] == found[1], value


@pytest.mark.parametrize("kind", pii_samples.kinds())
def test_a_whole_column_gives_what_each_text_gives(kind: str):
    texts = [sample.text for sample in pii_samples.samples(kind)]
    expected = [tagged(text) for text in texts[::20]]
    assert edited("redact_pii", texts, {"kinds": ALL_KINDS})[::20] == expected


@given(st.lists(st.text("0123456789 -+.:@aE京A（）()／１8６") | st.text(), max_size=5))
def test_hints_miss_nothing_that_is_found(texts: list[str]):
    operator = redactor()
    for text, redacted in zip(texts, edited("redact_pii", texts, {"kinds": ALL_KINDS}), strict=True):
        assert (redacted != text) == bool(operator.spans(text))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("联系zhang.san@163.com。", "联系<EMAIL>。"),
        ("'x@y.org', o'brien@x.com; ..a@b.co.", "'<EMAIL>', <EMAIL>; ..<EMAIL>."),
        ("a@b.com@c.org x.@y.com 用户@例子.公司", "<EMAIL>@c.org x.@y.com 用户@例子.公司"),
        ("8.8.8.8:53, 8.8.4.4/32, 10.0.0.1", "<IP>:53, <IP>/32, 10.0.0.1"),
        ("08.8.8.8 1.8.8.8.8 256.1.1.1", "08.8.8.8 1.8.8.8.8 256.1.1.1"),
        ("版本8.8.8.8，第 8.8.8.8 节，服务器8.8.8.8", "版本8.8.8.8，第 8.8.8.8 节，服务器<IP>"),
        ("at 2001:4860:4860::8888: [2606:4700::1111]:443", "at <IP>: [<IP>]:443"),
        ("std::vector a::b ::1 fe80::1 12:30:45", "std::vector a::b ::1 fe80::1 12:30:45"),
        ("::ffff:8.8.8.8", "::ffff:<IP>"),
        ("tel +44 (0)1483 301793, fax +44 (0)1483 561657", "tel <PHONE>, fax <PHONE>"),
        ("+1.617.877.3444 (202) 555-0143 202-555-0143", "<PHONE> <PHONE> <PHONE>"),
        ("（0571）88888888 010-62345678", "<PHONE> <PHONE>"),
        ("2024-01-01 7-5327-1234-5", "2024-01-01 7-5327-1234-5"),
        ("(86)13800138000 +1 3800138000", "<PHONE> +1 3800138000"),
        ("+13800138000 86 138 0013 8000 2024", "+<PHONE> <PHONE> 2024"),
        ("4111111111111111 4111111111111111。", "<BANK_CARD> <BANK_CARD>。"),
        ("卡号４１１１１１１１１１１１１１１１", "卡号<BANK_CARD>"),
        ("京A12345，粤B·D12345 鲁智深 云AB", "<LICENCE_PLATE>，<LICENCE_PLATE> 鲁智深 云AB"),
        ("13800138000@qq.com", "<EMAIL>"),
    ],
)  # fmt: skip
def test_what_is_found_in_a_text(text: str, redacted: str):
    assert tagged(text) == redacted


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("联系电话：138-0013-8000 9:00-18:00", "联系电话：<PHONE> 9:00-18:00"),
        ("2024-01-15 138-0013-8000 2024-01-15", "2024-01-15 <PHONE> 2024-01-15"),
        ("10:00:00 138 0013 8000 12:00", "10:00:00 <PHONE> 12:00"),
        ("138-0013-8000 139-0013-9000", "<PHONE> <PHONE>"),
        ("138 0013 8000 139 0013 9000 137 0013 7000", "<PHONE> <PHONE> <PHONE>"),
        ("1 138 0013 8000; 138 0013 8000 1; 138 0013 8000 2024年", "1 <PHONE>; <PHONE> 1; <PHONE> 2024年"),
        ("5 138-0013-8000 1234", "5 <PHONE> 1234"),
        ("1 4111 1111 1111 1111", "1 <BANK_CARD>"),
        ("2024-01-15 4111-1111-1111-1111 9:00", "2024-01-15 <BANK_CARD> 9:00"),
        ("4111 1111 1111 1111 4111 1111 1111 1111", "<BANK_CARD> <BANK_CARD>"),
        ("4111 1111 1111 1111 123, 3782 822463 10005 1234", "<BANK_CARD> 123, <BANK_CARD> 1234"),
        ("4111 1111 1111 1111 12/26", "<BANK_CARD> 12/26"),
        ("138 0013 8000 4111 1111 1111 1111 138 0013 8000", "<PHONE> <BANK_CARD> <PHONE>"),
    ],
)  # fmt: skip
def test_a_number_in_groups_is_found_beside_other_numbers(text: str, redacted: str):
    assert tagged(text) == redacted


@pytest.mark.parametrize(
    "text",
    ["138-0013-8000-1234", "12-138-0013-8000", "138 0013 8000 1234", "3 150 1200 3400 7",
     "5 138 0013 8000 1.5", "1-4111-1111-1111-1111", "4111-1111-1111-1111-2345", "4111 1111 1111 1111 2345",
     "1234 4111 1111 1111 1111", "1234 0044 2079 4609", "DE89 4111 1111 1111 1111", "4111 1111 1111 1112 12"],
)  # fmt: skip
def test_groups_that_go_on_are_no_number(text: str):
    assert tagged(text) == text


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("_bob@site.com_ __bob@site.com__ _bob@site.com", "_<EMAIL>_ __<EMAIL>__ <EMAIL>"),
        ("zhang@163.com-王经理 bob@site.com--Bob bob@site.com-", "<EMAIL>-王经理 <EMAIL>--Bob <EMAIL>-"),
        ("bob@site.com_2024.pdf bob@my-site.co-op.org", "<EMAIL>_2024.pdf <EMAIL>"),
        ("_13800138000_ _4111111111111111_ **010-65529988**", "_<PHONE>_ _<BANK_CARD>_ **<PHONE>**"),
        ("_8.8.8.8_ _2606:4700::1111_ _京A12345_", "_<IP>_ _<IP>_ _<LICENCE_PLATE>_"),
        ("张三_13800138000 a_13800138000 13800138000_a", "张三_<PHONE> a_13800138000 13800138000_a"),
        ("a@logo.png_ _@x.com_", "a@logo.png_ _@x.com_"),
    ],
)  # fmt: skip
def test_what_stands_beside_marks_is_found(text: str, redacted: str):
    assert tagged(text) == redacted


def test_a_pseudonym_of_an_address_is_the_same_in_emphasis():
    operator = redactor()
    assert {operator.spans(text)[0].value for text in ("_a@b.com_", "a@b.com--", "A@b.com")} == {"a@b.com"}


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("+8613800138000 86-138-0013-8000", "<PHONE> <PHONE>"),
        ("+65 6123 4567 +65 6123 4568 6123 4569", "<PHONE> <PHONE> 6123 4569"),
        ("+86 13800138000 10:00-18:00, +44 20 7946 0958 10:00", "<PHONE> 10:00-18:00, <PHONE> 10:00"),
        ("+33 1 23 45 67 89 2024 was, +1 415 555 2671 2024", "<PHONE> 2024 was, <PHONE> 2024"),
        ("+358 9 123456 2024-01-15, +49 30 1234567 2024年", "<PHONE> 2024-01-15, <PHONE> 2024年"),
        ("+86 10 65529988 8am, +86 21 6552 9988 12, +86 10 65529988 1", "<PHONE> 8am, <PHONE> 12, <PHONE> 1"),
        ("+81-3-1234-5678 12, +44 20 7946 0958 (2024)", "<PHONE> 12, <PHONE> (2024)"),
        ("(+44) 20 7946 0958 （+852）6123 4567 (0044) 20 7946 0958", "<PHONE> <PHONE> <PHONE>"),
        ("+44 20 7946 0958-+44 20 7946 0959 001-415-555-2671", "<PHONE>-<PHONE> <PHONE>"),
        ("1.+65 6123 4567 _+65 6123 4567_", "1.<PHONE> _<PHONE>_"),
        ("+86 138 0013 8000a +33 1 23 45 67 89a", "+86 138 0013 8000a +33 1 23 45 67 89a"),
        ("+86 138 0013 80001 +65 6123 45678 +65612345678", "+86 138 0013 80001 +65 6123 45678 +65612345678"),
    ],
)  # fmt: skip
def test_an_international_number_ends_with_a_group_of_its_own(text: str, redacted: str):
    assert tagged(text) == redacted


@pytest.mark.parametrize(
    "number",
    ["+86 138 001 38000", "+86.138.0013.8000", "+86 (138) 0013 8000", "0086 1380 013 8000",
     "+86 13800 138000", "+86-138-00-13-80-00", "（+86）138.0013.8000", "(0086)138 0013 8000",
     "+86 (0)138 0013 8000", "+86 0138 0013 8000", "+86138 00138000", "+86 1380 0138 000",
     "+861380 0138 000"],
)  # fmt: skip
def test_a_chinese_mobile_with_its_country_code_has_any_groups(number: str):
    assert tagged(f"电话{number} 10:00 {number}") == "电话<PHONE> 10:00 <PHONE>"
    assert [span.value for span in redactor().spans(number)] == ["13800138000"]


def test_groups_of_any_size_without_a_sign_of_the_country_are_no_mobile():
    text = "86 15 203 04 1250 138 001 38000 +86 138 0013 80001"
    assert tagged(text) == text


def test_private_addresses_are_found_on_demand():
    text = "10.0.0.1 fe80::1 fd00::2 2001:db8::3 a::b 224.0.0.1"
    assert tagged(text, public_ips_only=False) == "<IP> <IP> <IP> <IP> a::b <IP>"


def test_check_digits_are_those_of_the_standards():
    # The example of GB 11643, a card number that payment services publish for tests.
    assert is_id_card("11010519491231002X")
    assert not is_id_card("11010519491231002x".replace("x", "1"))
    assert is_luhn("4111111111111111")
    assert not is_luhn("4111111111111112")


@pytest.mark.parametrize(
    "text",
    ["a" * 300_000 + "@", "a@" * 100_000, "1" * 300_000, "1 " * 150_000, "1-" * 150_000, "a:" * 150_000,
     "+1" * 100_000, "1." * 150_000, "(1" * 100_000, "京A" * 100_000, "a.b@c.de " * 30_000, "00" * 100_000,
     "4111 " * 60_000, "+86 1" * 60_000, "+44 20" * 50_000, "0044 " * 60_000, "+44 " + "1 " * 150_000,
     "138 0013 8000 " * 20_000],
)  # fmt: skip
def test_long_texts_take_time_in_proportion(text: str):
    redactor().spans(text)


def test_the_table_in_the_docs_is_what_is_measured():
    document = Path(__file__).parents[3] / "docs" / "pii.md"
    assert pii_measures.table() in document.read_text("utf-8")
