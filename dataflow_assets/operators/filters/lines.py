"""Filters by the lines of a text: ellipses, bullets, symbols, Javascript."""

from collections.abc import Callable

from pydantic import Field

from dataflow_assets.operators.filters.profile import Profile
from dataflow_assets.operators.filters.rules import Phrase, RuleFilter
from dataflow_assets.operators.filters.single_rule import AtLeast, AtMost, at_least, at_most, share
from dataflow_assets.operators.registry import register
from dataflow_assets.text.characters import ELLIPSES
from dataflow_assets.text.document import Document

_FEW_LINES = 3


def _share_of_lines(document: Document, holds: Callable[[str], bool]) -> float | None:
    lines = document.written_lines
    return share(sum(map(holds, lines)), len(lines))


def _ellipsis_lines(document: Document, profile: Profile) -> float | None:
    return _share_of_lines(document, lambda line: line.rstrip().endswith(ELLIPSES))


def _bullet_lines(document: Document, profile: Profile) -> float | None:
    bullets = profile.strings("bullets")
    return _share_of_lines(document, lambda line: line.lstrip().startswith(bullets))


def _symbol_lines(document: Document, profile: Profile) -> float | None:
    return _share_of_lines(document, _is_mostly_symbols)


def _is_mostly_symbols(line: str) -> bool:
    """Whether most characters of the line, white space left out, are neither letters nor digits."""
    written = "".join(line.split())
    return 2 * sum(map(str.isalnum, written)) < len(written)


def _lines_without_javascript(document: Document, profile: Profile) -> float | None:
    lines = document.written_lines
    if len(lines) <= _FEW_LINES:
        return None
    return float(sum("javascript" not in line.lower() for line in lines))


class _BulletParams(AtMost):
    bullets: list[Phrase] | None = Field(
        None, description="What a line of a list begins with. Default: of the profile."
    )


@register
class FilterEllipsisLines(RuleFilter):
    """Keeps the rows of which few lines end in an ellipsis, as excerpts do.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `ellipsis_lines_share` (float64): of the lines that are not blank,
    those that end in `...` or `…`. Bound: at most 0.3 in both languages. Rejected rows have the reason
    `ellipsis_lines`. A blank text has no lines and stays. Raises nothing on text. Source: Gopher (Rae et al.
    2021, A1), open-dataflow's LineEndWithEllipsisFilter.

    Example:
        - {name: no_excerpts, type: filter_ellipsis_lines, params: {max: 0.2}}
    """

    name = "filter_ellipsis_lines"
    Params = AtMost
    params: AtMost
    rules = (at_most("ellipsis_lines", "share", _ellipsis_lines),)


@register
class FilterBulletLines(RuleFilter):
    """Keeps the rows that are not lists from beginning to end.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `bullet_lines_share` (float64): of the lines that are not blank,
    those that begin with one of `bullets`, by default • ‣ ▶ ◀ ◦ ■ □ ▪ ▫ –, in Chinese ● ○ ◆ ◇ ★ ☆ · too.
    Bound: at most 0.9 in both languages. Rejected rows have the reason `bullet_lines`. A blank text has no
    lines and stays. Raises nothing on text. Source: Gopher (Rae et al. 2021, A1), open-dataflow's
    LineStartWithBulletpointFilter; the Chinese bullets are our own.

    Example:
        - {name: no_lists, type: filter_bullet_lines, params: {max: 0.5, bullets: ["-", "*", "•"]}}
    """

    name = "filter_bullet_lines"
    Params = _BulletParams
    params: _BulletParams
    rules = (at_most("bullet_lines", "share", _bullet_lines),)


@register
class FilterSymbolLines(RuleFilter):
    """Keeps the rows of which few lines are made of symbols: rules, drawings, tables of signs.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `symbol_lines_share` (float64): of the lines that are not blank,
    those of whose characters, white space left out, fewer than half are letters or digits of any script.
    Bound: at most 0.3 in both languages. Rejected rows have the reason `symbol_lines`. A blank text has no
    lines and stays. Raises nothing on text. Source: our own; datatrove's SymbolLinesFormatter looks at
    lines in this way.

    Example:
        - {name: no_drawings, type: filter_symbol_lines, params: {max: 0.1}}
    """

    name = "filter_symbol_lines"
    Params = AtMost
    params: AtMost
    rules = (at_most("symbol_lines", "share", _symbol_lines),)


@register
class FilterJavascriptLines(RuleFilter):
    """Keeps the rows that have some lines without the word Javascript.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string);
    `mode: annotate` drops none and adds `javascript_lines_without` (float64): how many lines that are not
    blank have no `javascript` in any case; null for a text of up to 3 lines, which stays. Bound: at least 3
    in both languages. Rejected rows have the reason `javascript_lines`. Raises nothing on text. Source: C4
    (Raffel et al. 2020) as open-dataflow's LineWithJavascriptFilter has it.

    Example:
        - {name: no_scripts, type: filter_javascript_lines}
    """

    name = "filter_javascript_lines"
    Params = AtLeast
    params: AtLeast
    rules = (at_least("javascript_lines", "without", _lines_without_javascript),)
