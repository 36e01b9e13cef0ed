"""Takes web addresses out of texts."""

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, replaced

# RFC 3986 without quotes, brackets and the marks that more often end a sentence than a URL, and the
# letters of the alphabets in which people write addresses; Chinese, Japanese and Korean are not
# among them, because there text follows an address without a space.
_INSIDE = r"-A-Za-z0-9%/#=&_~+$@|\p{Latin}\p{Greek}\p{Cyrillic}\p{Arabic}\p{Hebrew}"
_NOT_AT_END = r".,;:!?*^"
_ANY = f"[{_INSIDE}{_NOT_AT_END}]"
_BODY = rf"(?:{_ANY}*(?:[{_INSIDE}]|\({_ANY}*\)|\[{_ANY}*\]))+"
URL_PATTERN = rf"(?:(?i:https?|ftp)://|\b(?i:www)\d?\.){_BODY}"


class _RemoveUrlsParams(ColumnParams):
    replacement: str = Field("", description="What stands in the place of an address, e.g. `<url>`.")


@register
class RemoveUrls(TextMapper):
    """Takes http, https, ftp and www addresses out of a text column.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). An
    address starts with `http://`, `https://`, `ftp://` or, not within a word, `www.`, in any case. It
    ends at white space, at a quote, an angle bracket or a Chinese, Japanese or Korean character, and
    before closing punctuation (`.,;:!?*` and a bracket that was opened before the address; a pair of
    brackets inside belongs to it). The space around it stays: `normalize_whitespace` tidies that.
    Characters of an address: RFC 3986 and Latin, Greek, Cyrillic, Arabic and Hebrew letters.
    Raises nothing on text.

    Example:
        - {name: without_urls, type: remove_urls, params: {column: text}}
    """

    name = "remove_urls"
    releases_gil = True
    Params = _RemoveUrlsParams
    params: _RemoveUrlsParams

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without addresses."""
        named = pc.match_substring(texts, "www", ignore_case=True)
        may_hold = pc.or_(pc.match_substring_regex(texts, "://"), named)
        without = edited_where(
            texts, may_hold, lambda some: replaced(some, URL_PATTERN, self.params.replacement)
        )
        return without, RowErrors.none()
