"""The thresholds and word lists of a filter in one language, from files that come with the package."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pydantic import RootModel

from dataflow_assets.serving.yaml_file import read_yaml
from dataflow_assets.text.language import Language

Setting = float | tuple[str, ...] | None
_FOLDER = Path(__file__).parent / "profiles"


class _Sections(RootModel[dict[str, dict[str, float | list[str] | None]]]):
    """A profile file: for each operator its settings; null switches a rule off."""


@cache
def _sections(language: Language) -> _Sections:
    return read_yaml(_FOLDER / f"{language}.yaml", _Sections)


class Profile(NamedTuple):
    """The settings of one operator in one language."""

    settings: Mapping[str, Setting]

    def number(self, name: str) -> float | None:
        """A threshold, or None where its rule is off."""
        value = self.settings.get(name)
        return None if isinstance(value, tuple) else value

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of words or marks; empty where there is none."""
        value = self.settings.get(name)
        return value if isinstance(value, tuple) else ()


def profile_of(operator: str, language: Language, given: Mapping[str, object]) -> Profile:
    """The shipped profile with the given parameters over it: None takes the profile's value, `off` none."""
    settings: dict[str, Setting] = {}
    for name, shipped in _sections(language).root.get(operator, {}).items():
        value = given.get(name)
        value = shipped if value is None else None if value == "off" else value
        settings[name] = tuple(value) if isinstance(value, list | tuple) else _number(value)
    return Profile(settings)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
