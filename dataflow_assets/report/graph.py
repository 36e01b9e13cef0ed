"""Where the steps of the graph stand in its picture, and the lines between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NODE_WIDTH, NODE_HEIGHT = 300, 66
_GAP_X, _GAP_Y = 24, 34
_BAR = NODE_WIDTH - 24
_NAME_CHARS = 30


@dataclass(frozen=True)
class Part:
    """A piece of a step's bar: its kind (kept, rejected, failed), its start and width in pixels."""

    kind: str
    x: float
    width: float


@dataclass(frozen=True)
class Node:
    """A step at its place. `bar` divides the rows that came in; empty where none did."""

    name: str
    short: str
    number: int
    x: float
    y: float
    bar: list[Part]


@dataclass(frozen=True)
class Graph:
    """The picture: its size, the steps, the lines as SVG paths with the middle of each and its rows."""

    width: float
    height: float
    nodes: list[Node]
    lines: list[str]


def laid_out(parents: Mapping[str, Sequence[str]], bars: Mapping[str, tuple[int, int, int]]) -> Graph:
    """The steps from top to bottom, each below its parents, those of one level side by side.

    `parents` has the source first; `bars` the rows kept, rejected and failed of each.
    """
    level: dict[str, int] = {}
    for name, above in parents.items():
        level[name] = max((level[parent] + 1 for parent in above), default=0)
    rows: dict[int, list[str]] = {}
    for name in parents:
        rows.setdefault(level[name], []).append(name)
    widest = max(map(len, rows.values()))
    width = widest * NODE_WIDTH + (widest - 1) * _GAP_X
    place: dict[str, tuple[float, float]] = {}
    for depth, names in rows.items():
        own = len(names) * NODE_WIDTH + (len(names) - 1) * _GAP_X
        for column, name in enumerate(names):
            x = (width - own) / 2 + column * (NODE_WIDTH + _GAP_X)
            place[name] = (x, depth * (NODE_HEIGHT + _GAP_Y))
    nodes = [
        Node(name, _short(name), number, *place[name], _bar(bars[name]))
        for number, name in enumerate(parents)
    ]
    lines = [_line(place[parent], place[name]) for name, above in parents.items() for parent in above]
    return Graph(width, len(rows) * (NODE_HEIGHT + _GAP_Y) - _GAP_Y, nodes, lines)


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…"


def _bar(rows: tuple[int, int, int]) -> list[Part]:
    total, x, parts = sum(rows), 0.0, []
    for kind, count in zip(("kept", "rejected", "failed"), rows, strict=True):
        if count:
            width = max(2.0, count / total * _BAR)
            parts.append(Part(kind, round(min(x, _BAR - 2), 1), round(width, 1)))
            x += width
    return parts


def _line(above: tuple[float, float], below: tuple[float, float]) -> str:
    x1, y1 = above[0] + NODE_WIDTH / 2, above[1] + NODE_HEIGHT
    x2, y2 = below[0] + NODE_WIDTH / 2, below[1]
    middle = (y1 + y2) / 2
    return f"M{x1:g} {y1:g}C{x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2:g}"
