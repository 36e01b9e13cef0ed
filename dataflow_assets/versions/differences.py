"""What differs between two locks of runs: inputs, parameters, versions and rows, step by step."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dataflow_assets.versions.lock import LockedStep, Rows, RunLock

MISSING = "-"


class Difference(NamedTuple):
    """One thing that is another: where it is, what it is called, how it was and how it is now."""

    where: str
    what: str
    before: object
    after: object

    def __str__(self) -> str:
        return f"{self.where}: {self.what} was {self.before}, is {self.after}"


def differences(before: RunLock, after: RunLock) -> list[Difference]:
    """All differences: pipeline, versions, settings, inputs, source, then each step in order."""
    found = [
        *_unequal("pipeline", {"name": before.pipeline}, {"name": after.pipeline}),
        *_unequal("versions", before.versions, after.versions),
        *_unequal("settings", _flat(before.settings), _flat(after.settings)),
        *_unequal("inputs", before.inputs, after.inputs),
        *_rows("source", before.source, after.source),
    ]
    old, new = ({step.name: step for step in lock.steps} for lock in (before, after))
    for name in dict.fromkeys([*old, *new]):
        found += _step(f"step {name}", old.get(name), new.get(name))
    return found


def _step(where: str, before: LockedStep | None, after: LockedStep | None) -> Iterator[Difference]:
    if before is None or after is None:
        there = [MISSING if step is None else step.type for step in (before, after)]
        yield Difference(where, "step", *there)
        return
    told = [
        *_unequal(where, {"type": before.type}, {"type": after.type}),
        *_unequal(where, {"version": before.version}, {"version": after.version}),
        *_unequal(where, {"depends_on": before.parents}, {"depends_on": after.parents}),
        *_unequal(where, _flat(before.params, "params"), _flat(after.params, "params")),
        *_unequal(where, _flat(before.identity, "identity"), _flat(after.identity, "identity")),
    ]
    if before.code != after.code and not told:
        told = [Difference(where, "code", before.code[:12], after.code[:12])]
    yield from told
    yield from _rows(where, before.rows, after.rows)


def _rows(where: str, before: Rows, after: Rows) -> Iterator[Difference]:
    for what in ("rows_in", "rows_out"):
        yield from _unequal(where, {what: getattr(before, what)}, {what: getattr(after, what)})
    for part in ("rejected", "failed"):
        old, new = ({f"{part} {name}": n for name, n in getattr(r, part).items()} for r in (before, after))
        yield from _unequal(where, old, new, missing=0)
    if before.batches == after.batches:
        return
    both = before.batches.keys() & after.batches.keys()
    changed = sum(before.batches[key] != after.batches[key] for key in both)
    gone, fresh = len(before.batches) - len(both), len(after.batches) - len(both)
    counted = f"{len(after.batches):,}: {changed:,} changed, {fresh:,} new, {gone:,} gone"
    yield Difference(where, "batches", f"{len(before.batches):,}", counted)


def _unequal(
    where: str, before: Mapping[str, object], after: Mapping[str, object], missing: object = MISSING
) -> Iterator[Difference]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, missing), after.get(name, missing)
        if old != new:
            yield Difference(where, name, old, new)


def _flat(value: Mapping[str, object], name: str = "") -> dict[str, object]:
    """Nested mappings as one, with dotted names."""
    flat: dict[str, object] = {}
    for key, inner in value.items():
        path = f"{name}.{key}" if name else key
        flat |= _flat(inner, path) if isinstance(inner, dict) and inner else {path: inner}
    return flat
