import pytest

from dataflow_assets_tests.operators.sample_tables import applied, edited, ids, typed_table

ENGLISH = "The committee met on Monday and agreed that the harbour needs a new wall before winter comes. "
CHINESE = "委员会星期一开会，一致认为港口需要在冬天之前修建一道新的防波堤，费用由市政府承担。"


def page(paragraph: str, title: str) -> str:
    body = f"<article><h1>{title}</h1><p>{paragraph * 3}</p><p>{paragraph * 2}</p></article>"
    menu = "<nav><a href='/'>Home page</a> <a href='/c'>Contact us</a></nav>"
    return (
        f"<html><head><title>{title}</title></head><body>{menu}{body}<footer>Imprint</footer></body></html>"
    )


@pytest.mark.parametrize("paragraph", [ENGLISH, CHINESE])
def test_the_main_text_comes_without_menu_and_footer(paragraph: str):
    found = edited("extract_html_text", [page(paragraph, "Harbour")])[0]
    assert (paragraph * 3).strip() in found
    assert not {"Home page", "Contact us", "Imprint"} & set(found.split("\n"))


def test_a_page_that_comes_twice_gives_the_same_text_twice():
    assert len(set(edited("extract_html_text", [page(ENGLISH, "Harbour")] * 5))) == 1


def test_a_heading_is_marked_in_markdown():
    found = edited("extract_html_text", [page(ENGLISH, "Harbour")], {"format": "markdown"})[0]
    assert "# Harbour" in found


def test_a_text_without_a_tag_is_not_touched():
    texts = ["plain a < b &amp; c", "", "中文"]
    assert edited("extract_html_text", texts) == texts


@pytest.mark.parametrize(("on_nothing", "expected"), [("strip", "too & short"), ("empty", "")])
def test_a_page_without_main_text_is_stripped_or_empty(on_nothing: str, expected: str):
    assert edited("extract_html_text", ["<p>too &amp; short</p>"], {"on_nothing": on_nothing}) == [expected]


def test_a_page_without_main_text_fails_where_that_is_asked_for():
    rows = typed_table("string", ["<p>short</p>", page(ENGLISH, "Harbour")])
    outcome = applied("extract_html_text", rows, {"on_nothing": "fail"})
    assert ids(outcome.kept) == ["r1"]
    assert outcome.failed is not None
    assert outcome.failed["error_class"].to_pylist() == ["NoMainText"]


def test_entities_go_and_ampersands_stay():
    text = "a&nbsp;b &#8217;&#x27; AT&T &unknown; &amp &lt;p&gt; R&D;"
    assert edited("remove_html_entities", [text], {"replacement": "_"}) == [
        "a_b __ AT&T &unknown; &amp _p_ R&D;"
    ]
