"""Takes marks of references, closing reference sections and images out of texts."""

import pyarrow as pa
import pyarrow.compute as pc
import regex
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, texts_by_row

_NUMBERS = r"[1-9][0-9]{0,2}(?:[ ]?[-–,，、~][ ]?[1-9][0-9]{0,2})*"
_WORDS = (
    r"(?i:edit|citation needed|note [0-9]{1,3}|ref\.? [0-9]{1,3}|better source needed|dubious"
    r"|clarification needed|when\?|who\?|by whom\?|according to whom\?|来源请求|來源請求|编辑|編輯"
    r"|原创研究[？?]?|注 ?[0-9]{1,3})"
)
_MARK = rf"\[(?:{_NUMBERS}|{_WORDS})\]|[〔［](?:{_NUMBERS})[〕］]"
_WIKI = r"(?is:<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>)|\{\{(?i:cite|citation|sfn|r)\b[^{}]*\}\}"
_BLANK = "[ \t\u3000]*"
_CHINESE_HEADINGS = ("参考文献", "参考资料", "參考文獻", "參考資料", "参考书目", "引用文献")
_HEADINGS = "|".join(
    [
        "references|bibliography|works cited|literature cited|notes and references",
        *(_BLANK.join(word) for word in _CHINESE_HEADINGS),
    ]
)
_NUMBER_BEFORE = r"(?:[0-9]{1,2}[.．、]?|[IVX]{1,5}[.．、]|[一二三四五六七八九十]{1,3}[、.．])"
_HEADING_LINE = regex.compile(
    rf"^{_BLANK}(?:#{{1,6}}[ \t]*|=+[ \t]*|\*\*)?(?:{_NUMBER_BEFORE}{_BLANK})?"
    rf"(?P<bracket>[【\[〔])?(?:{_HEADINGS})(?(bracket)[】\]〕])"
    rf"{_BLANK}(?:[:：]{_BLANK})?(?:(?:\*\*|[=#]+){_BLANK})?(?:[:：]{_BLANK})?\r?$",
    regex.MULTILINE | regex.IGNORECASE,
)
_SECTION_HINT = f"(?i){_HEADINGS}"


class _RemoveReferencesParams(ColumnParams):
    sections: bool = Field(
        False, description="Also the last part of the text, headed by a line such as References or 参考文献."
    )


@register
class RemoveReferences(TextMapper):
    """Takes marks of references out of a text column: `[12]`, `[3, 5-7]`, `[citation needed]`.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). Marks
    are numbers from 1 to 999, lists and ranges of them in square brackets, the words of Wikipedia in
    English and Chinese (`[edit]`, `[来源请求]`), `<ref>…</ref>` and `{{cite …}}`. Markdown links, `a[0]`,
    `sshd[430]:` and `a[1] = 2` stay, other indices go: clean no program code with it. With `sections`
    the last part of a text goes where a line of its own heads it as references (`References:`,
    `VII. References`, `【参考文献】`, `参 考 文 献`) and it is at most half of the text. Raises nothing on
    text. Source: C4 (Raffel et al. 2020), which strips `[n]`, `[edit]` and `[citation needed]`.

    Example:
        - {name: without_references, type: remove_references, params: {column: text}}
    """

    name = "remove_references"
    version = "2"
    releases_gil = True
    Params = _RemoveReferencesParams
    params: _RemoveReferencesParams

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without references."""
        if self.params.sections:
            headed = pc.match_substring_regex(texts, _SECTION_HINT)
            texts = edited_where(texts, headed, lambda some: texts_by_row(some, _without_section))
        # A link or an index by what follows; RE2 has no look-ahead, so it is put back as a group.
        pattern = rf"((?:{_MARK}) ?[(:;=])|{_MARK}|{_WIKI}"
        found = pc.match_substring_regex(texts, rf"{_MARK}|{_WIKI}")
        without = edited_where(texts, found, lambda some: pc.replace_substring_regex(some, pattern, r"\1"))
        return without, RowErrors.none()


def _without_section(text: str) -> str:
    heading = max((match.start() for match in _HEADING_LINE.finditer(text)), default=0)
    return text[:heading].rstrip() if heading >= len(text) / 2 else text


_TARGET = r"\((?:[^()\n]|\([^()\n]*\))*\)"
_ALT = r"((?:[^\[\]\n]|\[[^\[\]\n]*\])*)"
_MARKDOWN_IMAGE = rf"!\[{_ALT}\](?:{_TARGET}|\[[^\[\]\n]*\])"
_LINKED_IMAGE = rf"\[[ ]*{_MARKDOWN_IMAGE}[ ]*\]{_TARGET}"
_ATTRIBUTES = r"""(?:[^<>"']|"[^"<]*"|'[^'<]*')*"""
_VALUE = r"""(?:"([^"<]*)"|'([^'<]*)'|([^\s"'=<>`]+))"""
_HTML_ALT = rf"(?i:<img\b{_ATTRIBUTES}?\salt\s*=\s*{_VALUE}(?:[\s/]{_ATTRIBUTES})?>)"
_HTML_IMAGE = (
    rf"(?i:<img\b{_ATTRIBUTES}>|<img\b[^<>]*>|</img>|<svg\b[^<>]*>(?s:.*?)</svg>|<picture\b[^<>]*>|</picture>"
    r"|<source\b[^<>]*>)"
)
_WIKI_IMAGE = r"\[\[(?i:file|image|文件|图像|檔案):(?:[^\[\]]|\[\[[^\[\]]*\]\])*\]\]"


class _RemoveImageLinksParams(ColumnParams):
    keep_alt: bool = Field(False, description="Leave the text that stands for the image.")


@register
class RemoveImageLinks(TextMapper):
    """Takes images out of a text column: Markdown, HTML and MediaWiki.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). Goes:
    `![alt](address "title")`, `![alt][id]`, both also inside a link, `<img …>`, `<svg>…</svg>`,
    `<picture>`, `[[File:…]]`. With `keep_alt` the alternative text of the first three stays, `alt` in
    quotes or not, its entities as they are. Other links and tags stay. Raises nothing on text. Source:
    CommonMark 0.31, WHATWG HTML.

    Example:
        - {name: without_images, type: remove_image_links, params: {column: text}}
    """

    name = "remove_image_links"
    version = "2"
    releases_gil = True
    Params = _RemoveImageLinksParams
    params: _RemoveImageLinksParams

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without images."""
        found = pc.match_substring_regex(texts, r"!\[|(?i:<img|<svg|<picture|<source)|\[\[")
        keep_alt = self.params.keep_alt
        return edited_where(texts, found, lambda some: _without_images(some, keep_alt)), RowErrors.none()


def _without_images(texts: pa.ChunkedArray, keep_alt: bool) -> pa.ChunkedArray:
    for pattern in (_LINKED_IMAGE, _MARKDOWN_IMAGE):
        texts = pc.replace_substring_regex(texts, pattern, r"\1" if keep_alt else "")
    if keep_alt:
        texts = pc.replace_substring_regex(texts, _HTML_ALT, r"\1\2\3")
    return pc.replace_substring_regex(texts, f"{_HTML_IMAGE}|{_WIKI_IMAGE}", "")
