"""What is measured of texts, by texts whose measures are known."""

import pytest

from dataflow_assets.profiles.languages import language_at_a_glance
from dataflow_assets.profiles.texts import piece_hashes, text_measures


def measured(text: str, name: str) -> float:
    return float(text_measures([text])[name][0])


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("chars", "", 0),
        ("chars", "a👍中", 3),
        ("words", "It's a dog", 4),
        ("words", "我爱你 Python 3", 5),
        ("words", "café naïve", 2),
        ("digit_share", "12ab", 0.5),
        ("special_share", 'Plain, "quoted" text (so); really!', 0),
        ("special_share", "中文，标点。", 0),
        ("special_share", "##|a", 0.75),
        ("urls", "see https://a.org and www.b.org", 2),
        ("html_remains", "a<br/>b &amp; c &#39; 3 < 4 & 5 > 2", 3),
        ("damaged", "donâ€™t and Ã©tÃ© and �", 4),
        ("damaged", "Âge, Ã la carte, l’été, naïve, “quoted”", 0),
        ("damaged", "锟斤拷锟斤拷", 2),
        ("repetition", "one two three four five", 0),
        ("repetition", "a b c a b c a b c", 4 / 7),
        ("unfinished", "It ends.", 0),
        ("unfinished", "他说：“好。”", 0),
        ("unfinished", "It ends (so!)  \n", 0),
        ("unfinished", "It does not", 1),
        ("unfinished", "", 1),
    ],
)
def test_a_measure_of_a_text(name: str, text: str, value: float) -> None:
    assert measured(text, name) == pytest.approx(value)


def test_tokens_are_counted_where_a_tokenizer_is_given() -> None:
    assert text_measures(["a b", "c"], lambda texts: [len(text) for text in texts])["tokens"].tolist() == [
        3,
        1,
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "The house that was built on the hill is not for sale to you."),
        ("de", "Das Haus, das auf dem Hügel steht, ist nicht zu verkaufen, und es wird auch nicht."),
        ("fr", "La maison qui est sur la colline n'est pas à vendre pour les gens du village."),
        ("es", "La casa que está en la colina no se vende para los de su pueblo."),
        ("zh", "山上的房子不出售。"),
        ("ja", "丘の上の家は売り物ではありません。"),
        ("ko", "언덕 위의 집은 판매하지 않습니다."),
        ("ru", "Дом на холме не продаётся никому."),
        ("uk", "Будинок на пагорбі не продається нікому з їхніх."),
        ("ar", "البيت على التل ليس للبيع"),
        ("other", "xqzt brrm kplw vvvn sdfgh"),
        (None, "12 34"),
        (None, "ok"),
        (None, ""),
    ],
)
def test_the_language_at_a_glance(language: str | None, text: str) -> None:
    assert language_at_a_glance(text) == language


def test_texts_share_pieces_that_they_have_in_common() -> None:
    notice = "All rights reserved by the publisher"
    first = piece_hashes(f"A text of its own.\n{notice}.\nMore of it here.")
    second = piece_hashes(f"Something else is said. {notice}! And no more.")
    assert len(set(first) & set(second)) == 1
