"""The bars of a run on a terminal: one line a step, as many columns as there is room for."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dataflow_assets.cli.tally import Tally
from dataflow_assets.io.preview import visible

_BAR_LEAST, _BAR_MOST = 6, 40
_NAME_LEAST = 8
_GAP = 2
_REDRAWS_A_SECOND = 4


class _Column(NamedTuple):
    """A column with a number in it; those of the greatest `rank` go first where there is no room."""

    header: str
    cell: Callable[[Tally], str]
    rank: int
    style: Callable[[Tally], str] = lambda tally: ""


def _if_any(style: str, count: Callable[[Tally], int]) -> Callable[[Tally], str]:
    return lambda tally: style if count(tally) else "dim"


_COLUMNS = (
    _Column("batches", lambda tally: _of(tally.batches, tally.batches_wanted), 0),
    _Column("rows", lambda tally: f"{tally.rows:,}", 5),
    _Column("rows/s", lambda tally: f"{tally.rows_per_s:,.0f}" if tally.rows else "", 3),
    _Column("left", lambda tally: shown_seconds(tally.seconds_left), 2),
    _Column("rejected", lambda tally: f"{tally.rejected:,}", 4, _if_any("yellow", lambda t: t.rejected)),
    _Column("failed", lambda tally: f"{tally.failed:,}", 1, _if_any("bold red", lambda t: t.failed)),
)
_OF_MODELS = (
    _Column("tokens", lambda tally: f"{tally.tokens:,.0f}" if tally.asks_a_model else "", 7),
    _Column("cost", lambda tally: f"{tally.cost:,.4f}" if tally.asks_a_model else "", 6),
)


class Bars:
    """Redraws the tallies, under their lock, four times a second until it is closed; the last state stays.

    The cursor is never hidden, so that a run that is killed leaves the terminal as it was.
    """

    def __init__(self, tallies: Mapping[str, Tally], lock: AbstractContextManager, console: Console) -> None:
        self._tallies, self._lock, self._console = tallies, lock, console
        self._all = False
        self._live = Live(
            self,
            console=console,
            refresh_per_second=_REDRAWS_A_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def start(self) -> None:
        """Draws from now on."""
        if not self._live.is_started:
            self._live.start()
            self._console.show_cursor(True)

    def say(self, text: str) -> None:
        """A line above the bars."""
        self._console.print(Text(visible(text)))

    def close(self) -> None:
        """Draws all lines for the last time, however many there are."""
        self._all = True
        if self._live.is_started:
            self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            tallies = list(self._tallies.values())
            room = len(tallies) if self._all else max(1, console.height - 3)
            shown = tallies[-room:]
            if len(shown) < len(tallies):
                yield Text(f"{len(tallies) - len(shown)} steps above", style="dim")
            yield bar_table(shown, options.max_width)


def bar_table(tallies: Sequence[Tally], width: int) -> Table:
    """The lines of these tallies, at most `width` characters wide."""
    known = [*_COLUMNS, *(_OF_MODELS if any(tally.asks_a_model for tally in tallies) else ())]
    name_width = max(map(len, (visible(tally.name) for tally in tallies)), default=0)
    columns, left = _that_fit(known, tallies, width - min(name_width, max(_NAME_LEAST, width // 3)))
    bar_width = min(_BAR_MOST, left - _GAP)
    with_bar = bar_width >= _BAR_LEAST
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim", expand=False)
    spare = left - (_GAP + bar_width if with_bar else 0)
    table.add_column("", max_width=max(_NAME_LEAST, min(name_width, width // 3 + spare)), **_ONE_LINE)
    if with_bar:
        table.add_column("", width=bar_width, **_ONE_LINE)
    for column in columns:
        table.add_column(column.header, justify="right", **_ONE_LINE)
    for tally in tallies:
        bar = [_bar(tally, bar_width)] if with_bar else []
        cells = [Text(column.cell(tally), style=column.style(tally)) for column in columns]
        table.add_row(Text(visible(tally.name)), *bar, *cells)
    return table


_ONE_LINE = {"no_wrap": True, "overflow": "ellipsis"}


def _that_fit(columns: Sequence[_Column], tallies: Sequence[Tally], room: int) -> tuple[list[_Column], int]:
    """The columns that have room beside the name, and how many characters are left for the bar."""
    widths = {
        column.header: _GAP + max([len(column.header), *(len(column.cell(tally)) for tally in tallies)])
        for column in columns
    }
    kept = list(columns)
    while kept and sum(widths[column.header] for column in kept) + _GAP + _BAR_LEAST > room and len(kept) > 2:
        kept.remove(max(kept, key=lambda column: column.rank))
    return kept, room - sum(widths[column.header] for column in kept)


def _bar(tally: Tally, width: int) -> ProgressBar:
    share = tally.share
    if share is None:
        return ProgressBar(total=None, pulse=True, width=width)
    return ProgressBar(total=1.0, completed=share, width=width)


def _of(done: int, wanted: int) -> str:
    return f"{done:,}/{wanted:,}" if wanted else f"{done:,}"


def shown_seconds(seconds: float | None) -> str:
    """`0:42`, `1:02:03` or `2 days`; nothing where it is not known."""
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole >= 2 * 86_400:
        return f"{whole // 86_400} days"
    minutes, seconds_ = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_:02}" if hours else f"{minutes}:{seconds_:02}"
