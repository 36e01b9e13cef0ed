"""Which operators open-dataflow has, and which of our types runs each."""

from typing import NamedTuple

from dataflow_assets.errors import ConfigError
from dataflow_assets.operators.opendcai.declared import declared
from dataflow_assets.operators.opendcai.places import DISTRIBUTION, OPERATORS, is_installed, known_operators


class Known(NamedTuple):
    """An operator as `operator` of a step names it, the type of the step, and packages that are missing."""

    operator: str
    type: str
    lacks: list[str]


def known() -> list[Known]:
    """All operators of the package by name; those without a `run` are none. Raises ConfigError without it."""
    if not is_installed():
        raise ConfigError(f"{DISTRIBUTION} is not installed; run `pip install {DISTRIBUTION}`")
    found = []
    for place in known_operators():
        try:
            each = declared(place)
        except ConfigError:
            continue
        kind = "opendcai_llm" if each.servings else "opendcai"
        found.append(Known(place.path.removeprefix(f"{OPERATORS}."), kind, each.missing_packages()))
    return found
