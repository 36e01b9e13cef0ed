"""The graph of a pipeline's steps: who feeds whom, in which order, and what is wrong with it."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Protocol

from dataflow_assets.pipeline.names import SOURCE, identifier
from dataflow_assets.pipeline.problems import Problem, listed, near_names, shown


class Named(Protocol):
    """What the graph needs of a step; without `depends_on` it follows the step before it."""

    @property
    def name(self) -> str:
        """Unique in the pipeline."""
        ...

    @property
    def depends_on(self) -> Sequence[str] | None:
        """The parents' names."""
        ...


def parents_of(steps: Sequence[Named]) -> dict[str, list[str]]:
    """The parents of each step in their order; `source` stands for the source."""
    parents: dict[str, list[str]] = {}
    before = SOURCE
    for step in steps:
        named = [before] if step.depends_on is None else list(step.depends_on)
        parents[step.name] = named or [SOURCE]
        before = step.name
    return parents


def children_of(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The children of the source and of each step, in file order."""
    children: dict[str, list[str]] = {SOURCE: [], **{name: [] for name in parents}}
    for name, above in parents.items():
        for parent in above:
            children[parent].append(name)
    return children


def topological(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """The steps, each after its parents, ties in file order. Steps on or behind a cycle are left out."""
    place = {name: number for number, name in enumerate(parents)}
    waits = {name: sum(parent != SOURCE for parent in above) for name, above in parents.items()}
    children = children_of(parents)
    ready = [place[name] for name, count in waits.items() if count == 0]
    names, order = list(parents), []
    heapq.heapify(ready)
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for child in children[name]:
            waits[child] -= 1
            if waits[child] == 0:
                heapq.heappush(ready, place[child])
    return order


def graph_problems(steps: Mapping[int, Named], unsure: Sequence[str] = ()) -> list[Problem]:
    """The mistakes in the graph of these steps, by place in the file.

    `unsure` are names of steps that have other mistakes: they may be depended on.
    """
    places: dict[str, int] = {}
    for place, step in sorted(steps.items()):
        places.setdefault(identifier(step.name), place)
    known = dict.fromkeys([SOURCE, *(step.name for _place, step in sorted(steps.items())), *unsure])
    problems = []
    for place, step in steps.items():
        problems += _taken(place, step, places[identifier(step.name)], steps)
        problems += _wrong_parents(place, step, known)
    return problems or _cycles(steps)


def _taken(place: int, step: Named, first: int, steps: Mapping[int, Named]) -> list[Problem]:
    """The mistake of a step whose name is that of the step at `first`, to us or to Dagster."""
    if first == place:
        return []
    name = steps[first].name
    told = f"step {first + 1} has the name {name!r} too; give each its own"
    if name != step.name:
        told = (
            f"step {first + 1} is called {name!r}, and {step.name!r} is the same name to Dagster, which "
            "takes `-` for `_`; rename one of them"
        )
    return [Problem(told, ("steps", place, "name"))]


def _wrong_parents(place: int, step: Named, known: Mapping[str, None]) -> list[Problem]:
    """The mistakes in what the step depends on."""
    where = ("steps", place)
    problems = []
    for number, parent in enumerate(step.depends_on or ()):
        at = (*where, "depends_on", number)
        if parent == step.name:
            problems.append(Problem("depends_on: the step depends on itself", at))
        elif parent not in known:
            others = [name for name in known if name != step.name]
            message = f"there is no step {shown(parent)} (there are: {listed(others)})"
            problems.append(Problem(f"depends_on: {message}{near_names(parent, others)}", at))
        elif parent in (step.depends_on or ())[:number]:
            problems.append(Problem(f"depends_on: names {shown(parent)} twice", at))
    return problems


def _cycles(steps: Mapping[int, Named]) -> list[Problem]:
    """One mistake that names the steps of a cycle, if there is one."""
    order = [steps[place] for place in sorted(steps)]
    known = {SOURCE, *(step.name for step in order)}
    parents = {
        name: [p for p in above if p in known] or [SOURCE] for name, above in parents_of(order).items()
    }
    done = {SOURCE, *topological(parents)}
    left = [name for name in parents if name not in done]
    if not left:
        return []
    walk = [left[0]]
    seen: set[str] = set()
    while walk[-1] not in seen:
        seen.add(walk[-1])
        walk.append(next(parent for parent in parents[walk[-1]] if parent not in done))
    cycle = walk[walk.index(walk[-1]) :][::-1]
    first = min(place for place, step in steps.items() if step.name in cycle)
    message = f"depends_on: the steps go in a circle: {' -> '.join(cycle)}"
    return [Problem(message, ("steps", first, "depends_on"))]
