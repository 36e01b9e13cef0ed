"""Turns HTML into plain text: takes away tags, keeps every character that is no markup."""

import html
import html.entities
import re
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, texts_by_row

# Elements of the HTML standard and its obsolete features. Names that programs give to types count in
# lower or upper case only: `List<Object>` and `Map<Button>` are no HTML.
_BLOCKS = (
    "address article aside blockquote br caption center col colgroup dd dir div dl dt fieldset figcaption "
    "figure footer frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html li main nav noframes noscript ol "
    "optgroup p pre tbody td textarea tfoot th thead title tr ul"
)
_TYPE_LIKE_BLOCKS = "body details dialog form menu option section select summary table"
_INLINES = (
    "a abbr acronym applet area audio b basefont bdi bdo big blink canvas cite code del dfn em embed font "
    "i iframe img ins kbd keygen marquee meta meter nobr o:p picture q rp rt ruby s samp script small span "
    "strike strong style sub sup svg tt u wbr"
)
_TYPE_LIKE_INLINES = (
    "base button data datalist frame input label legend link map mark object output param progress slot "
    "source template time track var video"
)
_BARE_ATTRIBUTES = (
    "async|autofocus|checked|compact|controls|declare|defer|disabled|hidden|ismap|itemscope|loop|multiple|"
    "muted|nohref|noresize|noshade|novalidate|nowrap|open|readonly|required|reversed|selected"
)
_WS = r"[ \t\r\n\f]"
_WHITE_SPACE = " \t\r\n\f"
# Quotes may hold `>`; where one is not closed before the next `<`, the tag ends at its first `>`.
_ATTRIBUTES = r"""(?:(?:"[^"<]*"|'[^'<]*'|[^<>"'])*|[^<>]*)"""
# Either no attributes, or a first one that looks like one: in `a <b and c> d` nothing does.
_REST_OF_TAG = (
    rf"(?:{_WS}+[A-Za-z_:][-A-Za-z0-9_:.]*{_WS}*={_ATTRIBUTES}"
    rf"|{_WS}+(?i:{_BARE_ATTRIBUTES})(?:{_WS}{_ATTRIBUTES})?/?|{_WS}*/?)>"
)


def _tag(names: str, type_like_names: str = "", start: str = "</?") -> str:
    """The pattern of a tag with one of these names, the same for RE2 and Python."""
    words = f"(?i:{'|'.join(names.split())})"
    if type_like_names:
        lower = "|".join(type_like_names.split())
        words = f"(?:{words}|{lower}|{lower.upper()})"
    return f"{start}{words}{_REST_OF_TAG}"


_BLOCK = _tag(_BLOCKS, _TYPE_LIKE_BLOCKS)
_INLINE = _tag(_INLINES, _TYPE_LIKE_INLINES)
ENTITY = "&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_NEEDS_PARSER = r"<(?:[!?]|/?(?i:pre|script|style)[ \t\r\n\f/>])"

_inline = re.compile(_INLINE)
_block = re.compile(_BLOCK)
_block_run = re.compile(f"(?:{_BLOCK}{_WS}*)+")
_pre_tag = re.compile(_tag("pre", start="<(/?)"))
_dropped_start = re.compile(
    f"(?P<comment><!--)|(?P<script>{_tag('script', start='<')})|(?P<style>{_tag('style', start='<')})"
)
_dropped_end = {
    "comment": re.compile("-->"),
    "script": re.compile(rf"</script{_WS}*>", re.IGNORECASE),
    "style": re.compile(rf"</style{_WS}*>", re.IGNORECASE),
}
_declaration = re.compile(r"<(?:!doctype|!\[(?:if|else|endif)|\?xml)[^<>]*>", re.IGNORECASE)
_entity = re.compile(ENTITY)


class _StripHtmlParams(ColumnParams):
    column: str = Field("text", description="The column with HTML; it gets the plain text.")
    entities: Literal["tagged", "always"] = Field(
        "tagged",
        description="Where entities are decoded: in texts with a tag, or in `always` all (then put "
        "`fix_unicode` with `entities: false` before it).",
    )


@register
class StripHtml(TextMapper):
    """Takes HTML tags, scripts, styles and comments away and decodes entities once.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string).

    * A tag has the name of an HTML element, and no attributes or ones that look like some. Any other
      `<` is text: `a1<a2`, `List<String>`, `<user@host>`. A text without a tag or comment comes back
      unchanged, its entities too (`entities: always` decodes them there as well).
    * A block tag or `<br>`, with the white space around it and the block tags next to it, becomes
      one newline; an inline tag becomes nothing. Newlines at both ends of the result go. Other
      white space stays as it is, also inside `<pre>`, where one newline after the tag goes.
    * The content of `<script>`, `<style>` and `<!-- -->` goes where they are closed. Where they are
      not, nothing is lost but the tag. `<!DOCTYPE>`, `<![if]>` and `<?xml?>` go.
    * Entities that end in `;` are decoded once: `&amp;lt;` is `&lt;`.

    Raises nothing on text. Elements: WHATWG HTML standard, with its obsolete features.

    Example:
        - {name: plain, type: strip_html, params: {column: text}}
    """

    name = "strip_html"
    releases_gil = True
    Params = _StripHtmlParams
    params: _StripHtmlParams

    def edit(self, text: str) -> str:
        """The plain text of one row, by the full parser."""
        plain = _parsed(text)
        return _decoded(plain) if plain != text or self.params.entities == "always" else text

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All plain texts, each the same as `edit` gives: RE2 takes those that hold simple tags only."""
        plain = edited_where(texts, pc.match_substring(texts, "<"), _without_markup)
        if self.params.entities == "always":
            return _all_decoded(plain), RowErrors.none()
        if plain is texts:
            return texts, RowErrors.none()
        return edited_where(plain, pc.not_equal(plain, texts), _all_decoded), RowErrors.none()


def plain_text(page: str) -> str:
    """The text of a page: without markup, entities decoded once."""
    return _decoded(_parsed(page))


def _without_markup(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    hard = pc.match_substring_regex(texts, _NEEDS_PARSER)
    if pc.all(hard).as_py():
        return pa.chunked_array([texts_by_row(texts, _parsed)])
    simple = edited_where(texts, pc.invert(hard), _without_simple_tags)
    return edited_where(simple, hard, lambda some: texts_by_row(some, _parsed))


def _without_simple_tags(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    plain = pc.replace_substring_regex(texts, _INLINE, "")
    plain = pc.replace_substring_regex(plain, f"{_WS}*(?:{_BLOCK}{_WS}*)+", "\n")
    return pc.if_else(pc.not_equal(plain, texts), pc.utf8_trim(plain, "\n"), texts)


def _all_decoded(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return edited_where(
        texts, pc.match_substring_regex(texts, ENTITY), lambda some: texts_by_row(some, _decoded)
    )


def _decoded(text: str) -> str:
    """The text with every entity decoded once; unknown names stay."""
    return _entity.sub(_character, text)


def _character(entity: re.Match[str]) -> str:
    if entity[0][1] == "#":
        return html.unescape(entity[0])
    return html.entities.html5.get(entity[0][1:], entity[0])


def _parsed(text: str) -> str:
    """The text without its markup, entities as they are; in time linear in its length."""
    plain = _declaration.sub("", _without_dropped_content(text))
    plain = _lines(_inline.sub("", plain))
    return plain.strip("\n") if plain != text else text


def _without_dropped_content(text: str) -> str:
    """The text without comments, scripts and styles that are closed."""
    kept: list[str] = []
    unclosed: set[str] = set()
    done = 0
    start = _dropped_start.search(text)
    while start:
        kind = str(start.lastgroup)
        end = None if kind in unclosed else _dropped_end[kind].search(text, start.end())
        if end:
            kept.append(text[done : start.start()])
            done = end.end()
        else:
            unclosed.add(kind)
        start = _dropped_start.search(text, max(done, start.end()))
    return "".join([*kept, text[done:]])


def _lines(text: str) -> str:
    """The text with newlines for its block tags; what is in `<pre>` keeps its white space."""
    first, *rest = _pre_tag.split(text)
    if not rest:
        return _flowing_lines(text)
    lines = [_flowing_lines(first).rstrip(_WHITE_SPACE)]
    for slash, part in zip(rest[::2], rest[1::2], strict=True):
        if slash:
            lines.append(_flowing_lines(part).strip(_WHITE_SPACE))
        else:
            lines.append(_block.sub("\n", part.removeprefix("\r").removeprefix("\n").removesuffix("\n")))
    return "\n".join(line for line in lines if line)


def _flowing_lines(text: str) -> str:
    *lines, last = _block_run.split(text)
    return "\n".join([*(line.rstrip(_WHITE_SPACE) for line in lines), last])
