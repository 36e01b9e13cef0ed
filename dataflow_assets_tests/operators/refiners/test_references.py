import pytest

from dataflow_assets_tests.operators.sample_tables import edited


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("It is so.[12][3] Or not [4, 6–8].", "It is so. Or not ."),
        ("这样[1]、那样[2，3][来源请求]。[编辑]", "这样、那样。"),
        ("known[citation needed] [edit] [note 2]", "known  "),
        ("［１］不动，［12］〔3〕走", "［１］不动，走"),
        ("x<ref name=\"a\">Book\np. 3</ref>y<ref name='b' />z{{cite web|url=http://a.b|title=T}}.", "xyz."),
        ("[2023] [0] [1a] [x] done [t]ext []", "[2023] [0] [1a] [x] done [t]ext []"),
        ("make[1]: y[2] = 3; y[4]; so[5].", "make[1]: y[2] = 3; y[4]; so."),
        ("see [1](http://a.b) and [2]", "see [1](http://a.b) and "),
    ],
)
def test_marks_of_references_go(text: str, without: str):
    assert edited("remove_references", [text]) == [without]


@pytest.mark.parametrize(
    "heading",
    [
        "References",
        "## References",
        "参考文献：",
        "7. Bibliography",
        "== 参考资料 ==",
        "**REFERENCES**",
        "References:",
        "**References:**",
        "**References**:",
        "参考文献:",
        "【参考文献】",
        "[参考文献]",
        "VII. References",
        "## 7 References ##",
        "五、参考文献",
        "参 考 文 献",
        "　参考　文献　",
        "References\r",
    ],
)
def test_a_closing_section_goes_where_it_is_asked_for(heading: str):
    body = "Text about references, as long as it may be.\nAnd more of it."
    text = f"{body}\n\n{heading}\n[1] A. Book.\n[2] B. Book.\n"
    assert edited("remove_references", [text], {"sections": True}) == [body]
    assert "Book" in edited("remove_references", [text])[0]


@pytest.mark.parametrize(
    "line",
    ["References to this are many.", "References: [1] A", "【参考文献", "I References", "Preferences"],
)
def test_the_word_within_a_line_heads_no_section(line: str):
    text = f"The beginning of it all.\n{line}\nThe end."
    assert "The end." in edited("remove_references", [text], {"sections": True})[0]


def test_a_list_of_contents_does_not_take_the_text_with_it():
    text = "1. Words\n2. References\n\nNow the text itself begins, and it is long.\n"
    assert edited("remove_references", [text], {"sections": True}) == [text]


@pytest.mark.parametrize(
    ("text", "without", "with_alt"),
    [
        ("a ![cat](x.png) b", "a  b", "a cat b"),
        ('![a [b] c](http://x/y_(z).png "t")!', "!", "a [b] c!"),
        ("![](data:image/png;base64,AAAA==)中", "中", "中"),
        ("[![logo](l.svg)](http://a.b) x", " x", "logo x"),
        ("![alt][id] [link](a.b)", " [link](a.b)", "alt [link](a.b)"),
        ('<p><img src="a" alt="A cat">t</p><IMG src=b>', "<p>t</p>", "<p>A catt</p>"),
        ('<img alt="it\'s a cat" src=x>.', ".", "it's a cat."),
        ("<img src=x data-alt='no' alt='a \"b\"'/>.", ".", 'a "b".'),
        ("<img title=\"x alt='no'\" ALT = cat>.", ".", "cat."),
        ("<img\nalt=cat\nsrc=x /><img alt=cat/>.", ".", "catcat/."),
        ('<img alt="a > b" src="c">.', ".", "a > b."),
        ('<img alt="" src=x><img src="alt=x y">.', ".", "."),
        ('<img alt="torn src=x> 5" or 6"', ' 5" or 6"', ' 5" or 6"'),
        ("x<svg a='1'>\n<path/></svg>y<picture><source src=a><img></picture>", "xy", "xy"),
        ("[[File:A.jpg|thumb|A [[b]] c]] [[page]] [[文件:x.png]]", " [[page]] ", " [[page]] "),
        ("wow! [a](b) ![open x[1]", "wow! [a](b) ![open x[1]", "wow! [a](b) ![open x[1]"),
    ],
)
def test_images_go_and_links_stay(text: str, without: str, with_alt: str):
    assert edited("remove_image_links", [text]) == [without]
    assert edited("remove_image_links", [text], {"keep_alt": True}) == [with_alt]
