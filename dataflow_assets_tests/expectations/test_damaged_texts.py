"""The measure `damaged`: which texts were read in a wrong encoding, and which are only foreign."""

import pytest

from dataflow_assets.profiles.texts import text_measures

CHINESE = "你好，世界。这些功能由发布经理及其团队负责。"


def damaged(text: str) -> float:
    return text_measures([text])["damaged"][0]


@pytest.mark.parametrize(
    "text",
    [
        CHINESE.encode().decode("latin-1"),
        CHINESE.encode().decode("cp1252", "replace"),
        CHINESE.encode().decode("gb18030", "replace"),
        CHINESE.encode("gb18030").decode("latin-1"),
        CHINESE.encode("gb18030").decode("utf-8", "replace"),
        "it’s".encode().decode("latin-1"),
        "it’s".encode().decode("latin-1").encode().decode("latin-1"),
        "café".encode().decode("cp1252"),
        "привет".encode().decode("cp1252", "replace"),
        "lost �",
        "锟斤拷",
    ],
)
def test_a_text_that_was_read_in_a_wrong_encoding_is_seen(text):
    assert damaged(text) > 0


@pytest.mark.parametrize(
    "text",
    [
        CHINESE,
        "« voilà\xa0» dit-il à\xa0: «\xa0café\xa0»",
        "„Spaß»“ im Menü“, größer ÄÄÄÄÄÄh",
        "¡Ñandú! ¿Qué? «España»",
        "é…”, là—“où”",
        "naïve café™ résumé®",
        "Þór, Ærøskøbing, São Paulo, coração",
        "横浜の浣熊",
        "······ ×××××× 5 µm ±2°",
        "Tiếng Việt: đây là những người",
        "",
    ],
)
def test_a_foreign_text_is_not_damaged(text):
    assert damaged(text) == 0
