"""`dataflow-assets ledger`: what the ledger of answers holds, keeping it small, and its answers as a file."""

import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dataflow_assets.cli.console import print_line, print_table, work_of
from dataflow_assets.cli.look_commands import as_json, print_json
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline_work import DEFAULT_ROOT, LEDGER_FILE, ROOT_VARIABLE
from dataflow_assets.serving.usage import shown_cost

if TYPE_CHECKING:
    from dataflow_assets.serving.ledger import Ledger, ModelStats

_TIMES_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_HEADERS = ("model", "answers", "tokens in", "tokens out", "cost", "bytes", "hits", "oldest", "newest")


class _Quantity(click.ParamType):
    """A number with a unit, e.g. `30d`; what it gives is in the unit whose factor is 1."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.name = name
        self._units = units

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", str(value))
        if match is None or match[2] not in self._units:
            self.fail(f"{value!r}: expected a number with one of {', '.join(self._units)}", param, ctx)
        return float(match[1]) * self._units[match[2]]


def _which_ledger(command: Callable[..., None]) -> Callable[..., None]:
    """`[PIPELINE]`, `--root` and `--ledger`: which ledger is meant."""
    command = click.option("--ledger", metavar="FILE|URL", help="The ledger itself, of no pipeline.")(command)
    command = click.option("--root", metavar="DIR", help="Where the files are.")(command)
    return click.argument("pipeline", required=False, metavar="[PIPELINE|FILE]")(command)


def _opened(pipeline: str | None, root: str | None, ledger: str | None) -> "Ledger":
    from dataflow_assets.serving.ledger import Ledger

    if ledger is not None and (pipeline or root):
        raise ConfigError("--ledger names the ledger itself; leave out PIPELINE and --root, or --ledger")
    if ledger is None:
        named = root or os.environ.get(ROOT_VARIABLE) or DEFAULT_ROOT
        folder = Path(DEFAULT_ROOT if "://" in named else named)
        ledger = work_of(pipeline, root).ledger if pipeline else str(folder / LEDGER_FILE)
    return Ledger(ledger, create=False)


@click.group("ledger")
def ledger_group() -> None:
    """The ledger of answers: what it holds, keeping it small, its answers as a file.

    Without PIPELINE it is that of the default root.
    """


@ledger_group.command()
@_which_ledger
@as_json
def stats(pipeline: str | None, root: str | None, ledger: str | None, as_json: bool) -> None:
    """What the ledger holds, by model: answers, what they cost, how often they were found again."""
    with _opened(pipeline, root, ledger) as opened:
        found = opened.stats()
    if as_json:
        print_json([line._asdict() for line in found])
    elif found:
        print_table(_HEADERS, map(_shown, found), right=_HEADERS[1:7])
    else:
        print_line(f"the ledger {opened.place} holds no answers")


def _shown(line: "ModelStats") -> tuple[str, ...]:
    counts = (f"{number:,}" for number in (line.answers, line.tokens_in, line.tokens_out))
    times = (datetime.fromtimestamp(time).strftime("%Y-%m-%d %H:%M") for time in (line.oldest, line.newest))
    return line.model, *counts, shown_cost(line.cost), f"{line.bytes:,}", f"{line.hits:,}", *times


@ledger_group.command()
@_which_ledger
@click.option(
    "--older-than", type=_Quantity("age", _TIMES_S), help="Remove answers not used for so long, e.g. 30d."
)
@click.option(
    "--max-size",
    type=_Quantity("size", _SIZES),
    help="Then remove those used longest ago, until so much holds, e.g. 2GB.",
)
def prune(
    pipeline: str | None,
    root: str | None,
    ledger: str | None,
    older_than: float | None,
    max_size: float | None,
) -> None:
    """Remove answers; a run that needs one of them again asks and pays again."""
    if older_than is None and max_size is None:
        raise ConfigError("nothing says what to remove; give --older-than, e.g. 30d, or --max-size, e.g. 2GB")
    with _opened(pipeline, root, ledger) as opened:
        pruned = opened.prune(older_than, None if max_size is None else int(max_size))
    print_line(f"{pruned.removed:,} answers removed, {pruned.kept:,} kept in {pruned.bytes:,} bytes")


@ledger_group.command()
@_which_ledger
@click.option("--to", required=True, metavar="FILE", help="The file, of JSON lines.")
def export(pipeline: str | None, root: str | None, ledger: str | None, to: str) -> None:
    """Write all answers to a file, oldest first; with what was asked, where the ledger keeps it."""
    from dataflow_assets.exports.target import check_not_read

    with _opened(pipeline, root, ledger) as opened:
        if pipeline:
            check_not_read(work_of(pipeline, root), Path(to))
        count = opened.export(Path(to))
    print_line(f"{count:,} answers in {to}")
