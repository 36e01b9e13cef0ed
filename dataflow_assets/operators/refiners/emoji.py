"""Takes emoji and emoticons out of texts."""

import re
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, RowErrors, TextMapper
from dataflow_assets.operators.refiners.data_files import data_lines, data_table
from dataflow_assets.operators.registry import register
from dataflow_assets.operators.selected_texts import edited_where, replaced, texts_by_row

# © ® and ™ ℹ: pictographs to Unicode, to people a part of the text.
_TEXT_SIGNS = (r"\x{A9}", r"\x{AE}", r"\x{2122}", r"\x{2139}")


@cache
def _points(name: str) -> tuple[str, ...]:
    """The code points and ranges of a property, in the syntax of RE2."""
    spans = (span.split("-") for span in data_table("emoji.txt", ":")[name].split())
    return tuple("-".join(f"\\x{{{point}}}" for point in span) for span in spans)


@cache
def emoji_pattern(symbols: bool) -> str:
    """An RE2 pattern for whole emoji (UTS #51), with `symbols` also for pictographs shown as text."""
    emoji = f"[{''.join(_points('Emoji_Presentation'))}]"
    picture = f"[{''.join(_points('Extended_Pictographic'))}]"
    skin = r"[\x{1F3FB}-\x{1F3FF}]"
    tags = r"(?:[\x{E0020}-\x{E007E}]+\x{E007F})"
    look = rf"(?:\x{{FE0F}}|\x{{FE0E}}|{skin})"
    joined = rf"(?:\x{{200D}}{picture}{look}?)"
    parts = [
        rf"{emoji}{look}?(?:{tags}|\x{{20E3}})?{joined}*",
        rf"{picture}(?:\x{{FE0F}}|{skin}){joined}*",
        rf"{picture}{joined}+",
        r"[0-9#*]\x{FE0F}?\x{20E3}",
    ]
    signs = "".join(part for part in _points("Extended_Pictographic") if part not in _TEXT_SIGNS)
    return "|".join([*parts, f"[{signs}]\\x{{FE0E}}?"] if symbols else parts)


class _RemoveEmojiParams(ColumnParams):
    replacement: str = Field("", description="What stands in the place of an emoji.")
    symbols: bool = Field(
        False,
        description="Also pictographs that are shown as text unless U+FE0F follows, such as ❤ ☎ ✂ ↔; "
        "© ® ™ ℹ stay.",
    )


@register
class RemoveEmoji(TextMapper):
    """Takes emoji out of a text column, each sequence as a whole.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). An
    emoji is what Unicode shows as one: a character with Emoji_Presentation, a pictograph with U+FE0F
    or a skin tone, keycaps, flags (of subdivisions too), and everything that is joined to it by
    U+200D. Digits, `#`, `*`, letters of every script and © ® ™ stay, and joiners between letters.
    Raises nothing on text. Source: UTS #51, Unicode's emoji-data.txt, in the package.

    Example:
        - {name: without_emoji, type: remove_emoji, params: {column: text}}
    """

    name = "remove_emoji"
    releases_gil = True
    Params = _RemoveEmojiParams
    params: _RemoveEmojiParams

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without emoji; ASCII texts are not touched."""
        foreign = pc.invert(pc.string_is_ascii(texts))
        return edited_where(texts, foreign, self._without_emoji), RowErrors.none()

    def _without_emoji(self, texts: pa.ChunkedArray) -> pa.ChunkedArray:
        pattern = emoji_pattern(self.params.symbols)
        found = pc.match_substring_regex(texts, pattern)
        return edited_where(texts, found, lambda some: replaced(some, pattern, self.params.replacement))


# Beside a letter, digit, quote or bracket an emoticon is none: `10:30`, `f(x:)`, `C:\\`, `"a":[1]`, `=>`.
_FACE = (
    r"(?<![0-9A-Za-z\u00c0-\u024f\ufffd_\"'`.:;=*,)\]}\[{(<>/])"
    r"(?:[:;][-o^'~]?(?:[)(\]\[}{|/\\*<>]+|[DPpOoSs3])|=[-o^']?[)(DPp3]|8-[)(D])"
    r"(?![0-9A-Za-z_\"'`/\\:;=,\[{(<])"
)
_HINT = r"[:;=8][-o^'~]?[)(\]\[}{|/\\*<>DPpOoSs3]"


@cache
def _emoticons() -> re.Pattern[str]:
    """Listed emoticons, the longest first, where no ASCII word goes on; and faces of parts."""
    listed = sorted(data_lines("emoticons.txt"), key=len, reverse=True)
    words = "|".join(map(re.escape, listed))
    return re.compile(rf"(?<![0-9A-Za-z_\\/^])(?:{words})(?![0-9A-Za-z_^]|\.[0-9])|{_FACE}")


@cache
def _emoticon_hint() -> str:
    """An RE2 pattern that every text with an emoticon matches."""
    return "|".join([_HINT, *map(re.escape, data_lines("emoticons.txt"))])


class _RemoveEmoticonsParams(ColumnParams):
    replacement: str = Field("", description="What stands in the place of an emoticon.")


@register
class RemoveEmoticons(TextMapper):
    r"""Takes emoticons made of signs out of a text column: `:-)`, `XD`, `(T_T)`, `¯\_(ツ)_/¯`.

    Grain: one row in, one row out; order and ids unchanged. Reads and writes `column` (string). An
    emoticon is one of a list in the package, or eyes, nose and mouth in a row, and never a part of an
    ASCII word, number or quotation: `10:30`, `C:\`, `f(x:)`, `{"a":[1]}` stay. A western face that
    lies on the other side, `(-:`, is left. Raises nothing on text.

    Example:
        - {name: without_emoticons, type: remove_emoticons, params: {column: text}}
    """

    name = "remove_emoticons"
    Params = _RemoveEmoticonsParams
    params: _RemoveEmoticonsParams

    def edit(self, text: str) -> str:
        """The text without emoticons."""
        return _emoticons().sub(lambda _: self.params.replacement, text)

    def edit_column(self, texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, RowErrors]:
        """All texts without emoticons."""
        found = pc.match_substring_regex(texts, _emoticon_hint())
        return edited_where(texts, found, lambda some: texts_by_row(some, self.edit)), RowErrors.none()
