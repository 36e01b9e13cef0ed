"""Makes the page `docs/operators.md` from what the operators say of themselves."""

import sys
from collections.abc import Iterator

from dataflow_assets.operators.catalog import OTHER, Described, by_kind, described

_HEAD = """\
# Catalogue of operators
Made by `python -m dataflow_assets.operators_page > docs/operators.md` from the operators themselves; do
not edit it. `dataflow-assets operators` lists them, with yours; `dataflow-assets operators NAME` prints
one. How to write your own: [operators-how-to.md](operators-how-to.md).

`row` scope: each row is decided alone. `dataset` scope: the decision needs all rows, and the result is the
same for every batch size.
"""


def page() -> str:
    """The whole page: a table of each kind, then every operator. Only those of this package."""
    shipped = {kind: list(map(described, found)) for kind, found in by_kind().items() if kind != OTHER}
    parts = [_HEAD]
    for kind, found in shipped.items():
        parts.append(f"\n## {kind}\n| operator | scope | what it does |\n|---|---|---|\n")
        for each in found:
            parts.append(f"| [{each.name}](#{each.name}) | {each.scope} | {_cell(each.summary)} |\n")
    for found in shipped.values():
        for each in found:
            parts += _section(each)
    return "".join(parts)


def _section(operator: Described) -> Iterator[str]:
    yield f"\n## {operator.name}\n{operator.summary}\n\n{operator.description}\n"
    if operator.columns:
        yield f"\n{operator.columns}\n"
    if operator.parameters:
        yield "\n| parameter | type | default | range | meaning |\n|---|---|---|---|---|\n"
    for parameter in operator.parameters:
        cells = (parameter.type, parameter.default, parameter.range, parameter.meaning)
        yield f"| `{parameter.name}` | {' | '.join(map(_cell, cells))} |\n"
    yield f"\n```yaml\n{operator.example}\n```\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.stdout.write(page())
