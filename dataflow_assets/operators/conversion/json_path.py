"""A small JSON path: names, places and all items, as `$.data[*].pairs[0]`."""

import re
from collections.abc import Sequence

Step = str | int | None
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<place>\d+)\]|(?P<all>\[\*\])|\[\"(?P<quoted>[^\"]*)\"\]")


def parsed_path(path: str) -> list[Step]:
    """The steps of a path: a name, a place, or None for all items. Raises ValueError.

    A `$` may stand at the start; a first name needs no dot.
    """
    rest = path.removeprefix("$")
    rest = rest if not rest or rest[0] in ".[" else f".{rest}"
    steps: list[Step] = []
    place = 0
    while place < len(rest):
        found = _STEP.match(rest, place)
        if found is None:
            raise ValueError(f"{path!r} is no path; expected names, places and all items: $.data[0].pairs[*]")
        if found["place"] is not None:
            steps.append(int(found["place"]))
        else:
            steps.append(None if found["all"] else found["name"] or found["quoted"])
        place = found.end()
    return steps


def found_at(value: object, steps: Sequence[Step]) -> list[object]:
    """What is at the path, in order; nothing where a part of it is not there."""
    found = [value]
    for step in steps:
        found = [inner for outer in found for inner in _below(outer, step)]
    return found


def _below(value: object, step: Step) -> Sequence[object]:
    if step is None:
        return value if isinstance(value, list) else ()
    if isinstance(step, int):
        return value[step : step + 1] if isinstance(value, list) else ()
    return (value[step],) if isinstance(value, dict) and step in value else ()
