"""Where the steps of the graph stand in its picture, and the lines between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NODE_WIDTH, NODE_HEIGHT = 300, 66
_GAP_X, _GAP_Y = 24, 34
_BAR = NODE_WIDTH - 24
_NAME_CHARS = 30
_PASSAGE_WIDTH = 16


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
    """The picture: its size, the steps, the lines between them as SVG paths."""

    width: float
    height: float
    nodes: list[Node]
    lines: list[str]


Place = tuple[str, str]  # a step and "", or a line's two ends where it passes a level


def laid_out(parents: Mapping[str, Sequence[str]], bars: Mapping[str, tuple[int, int, int]]) -> Graph:
    """The steps from top to bottom, each below its parents, those of one level side by side.

    A line that passes a level has a gap of its own there. `parents` has the source first; `bars` the
    rows kept, rejected and failed of each.
    """
    level: dict[str, int] = {}
    for name, above in parents.items():
        level[name] = max((level[parent] + 1 for parent in above), default=0)
    edges = [(parent, name) for name, above in parents.items() for parent in above]
    levels: list[list[Place]] = [[] for _ in range(max(level.values()) + 1)]
    for name in parents:
        levels[level[name]].append((name, ""))
    for edge in edges:
        for depth in range(level[edge[0]] + 1, level[edge[1]]):
            levels[depth].append(edge)
    centres = _centres(levels, parents, level)
    left = min(centres[place] - _width(place) / 2 for row in levels for place in row)
    width = max(centres[place] + _width(place) / 2 for row in levels for place in row) - left
    nodes = [
        Node(
            name,
            _short(name),
            number,
            centres[name, ""] - NODE_WIDTH / 2 - left,
            level[name] * (NODE_HEIGHT + _GAP_Y),
            _bar(bars[name]),
        )
        for number, name in enumerate(parents)
    ]
    lines = [_line(edge, level, centres, left) for edge in edges]
    return Graph(width, len(levels) * (NODE_HEIGHT + _GAP_Y) - _GAP_Y, nodes, lines)


def _centres(
    levels: Sequence[Sequence[Place]], parents: Mapping[str, Sequence[str]], level: Mapping[str, int]
) -> dict[Place, float]:
    """Where the middle of each place is from left to right; near what it hangs on, each level around 0."""
    centres: dict[Place, float] = {}

    def wish(place: Place) -> float:
        """The middle of the places that it hangs on, in the level above."""
        name, end = place
        above = [(name, end)] if end else [(parent, name) for parent in parents[name]]
        xs = [centres.get(edge, centres.get((edge[0], ""), 0.0)) for edge in above]
        return sum(xs) / len(xs) if xs else 0.0

    for row in levels:
        x = -(sum(map(_width, row)) + (len(row) - 1) * _GAP_X) / 2
        for place in sorted(row, key=wish):
            centres[place] = x + _width(place) / 2
            x += _width(place) + _GAP_X
    return centres


def _width(place: Place) -> float:
    return _PASSAGE_WIDTH if place[1] else NODE_WIDTH


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


def _line(
    edge: tuple[str, str], level: Mapping[str, int], centres: Mapping[Place, float], left: float
) -> str:
    """From the bottom of a step to the top of another, straight down where it passes a level."""
    above, below = edge
    x = centres[above, ""] - left
    path = f"M{x:g} {level[above] * (NODE_HEIGHT + _GAP_Y) + NODE_HEIGHT:g}"
    for depth in range(level[above] + 1, level[below] + 1):
        top = depth * (NODE_HEIGHT + _GAP_Y)
        to = (centres[edge] if depth < level[below] else centres[below, ""]) - left
        path += f"C{x:g} {top - _GAP_Y / 2:g} {to:g} {top - _GAP_Y / 2:g} {to:g} {top:g}"
        if depth < level[below]:
            path += f"V{top + NODE_HEIGHT:g}"
        x = to
    return path
