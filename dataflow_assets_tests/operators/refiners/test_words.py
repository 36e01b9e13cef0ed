import pytest

from dataflow_assets.fingerprints import operator_fingerprint
from dataflow_assets.operators import build_operator
from dataflow_assets_tests.operators.sample_tables import edited


def test_english_stop_words_go_with_the_spaces_behind_them():
    text = "The cat isn't on THE mat, and I don’t mind. Theory"
    assert edited("remove_stop_words", [text]) == ["cat mat, mind. Theory"]


def test_chinese_stop_words_are_words_and_not_characters():
    assert edited("remove_stop_words", ["我们在北京的学校学习目的论"]) == ["北京学校学习目的论"]


def test_words_can_be_kept_and_added():
    params = {"language": "en", "keep": ["Not"], "add": ["Cat"]}
    assert edited("remove_stop_words", ["not the cat"], params) == ["not "]


def test_the_language_can_be_fixed():
    assert edited("remove_stop_words", ["的 the"], {"language": "en"}) == ["的 "]
    assert edited("remove_stop_words", ["the 的"], {"language": "zh"}) == ["the "]


def test_other_words_are_another_operator():
    plain, more = build_operator("remove_stop_words", {}), build_operator("remove_stop_words", {"add": ["x"]})
    assert operator_fingerprint(plain) != operator_fingerprint(more)


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("In 2023 it was 1,234.5 or -3% (+4).", "In  it was  or  ()."),
        ("B2B x86_64 3rd v1.2 a1", "B2B x86_64 3rd v1.2 a1"),
        ("共12人，第３章，三个 ٣", "共人，第章，三个 "),
        ("a-1 1-2 2023-01-02", "a-1 - --"),
        ("3.5mm 10,000km 1.2.3rc 3.5毫米 3.5.", "3.5mm 10,000km 1.2.3rc 毫米 ."),
        ("B１２ １２th B１２B １２3", "B１２ １２th B１２B "),
    ],
)
def test_numbers_go_and_words_with_digits_stay(text: str, without: str):
    assert edited("remove_numbers", [text]) == [without]


def test_every_digit_goes_where_digits_are_asked_for():
    params = {"what": "digits", "replacement": "\\0"}
    assert edited("remove_numbers", ["B22B ３ 1.5"], params) == ["B\\0B \\0 \\0.\\0"]


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("I don't; I'm, WE'RE, Can't! it’s", "I do not; I am, WE ARE, Cannot! it is"),
        ("won't shan't ain't let's shouldn't've", "will not shall not is not let us should not have"),
        ("he'd John's rock'n'roll o'clock 'quoted'", "he'd John's rock'n'roll o'clock 'quoted'"),
        ("他说don't好", "他说do not好"),
        ("they'll you've CAN'T", "they will you have CANNOT"),
    ],
)
def test_contractions_are_written_in_full(text: str, long: str):
    assert edited("expand_contractions", [text]) == [long]
