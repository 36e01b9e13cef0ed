"""What models cost: the price that the pipeline gives, else the price table of the package."""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from dataflow_assets.serving.spec import Price, ScriptedSpec, ServingSpec, TransformersSpec
from dataflow_assets.serving.yaml_file import read_yaml

TABLE = Path(__file__).parent / "prices.yaml"
TABLE_VARIABLE = "DATAFLOW_PRICES"
_MILLION = 1_000_000


class _Table(BaseModel):
    """A price table: USD per million tokens by pattern of model names."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    as_of: str | None = None
    source: str | None = None
    prices: dict[str, Price]


def price_of(model: str, override: Price | None = None, file: Path | None = None) -> Price | None:
    """The price of a model: `override`, else that of `file`, else that of the package; None if unknown.

    A pattern (`gpt-4o-20??-*`) is matched with the name, in lower case, and with what is after its
    last slash (`openai/gpt-4o`); of several that match the longest counts. Raises ConfigError where
    `file` cannot be read.
    """
    if override is not None:
        return override
    own = _in(_read(file), model) if file else None
    return own or _in(_shipped(), model)


def known_price(spec: ServingSpec) -> Price | None:
    """The price of a serving's model: its own, that of the table DATAFLOW_PRICES, else the package's."""
    table = os.environ.get(TABLE_VARIABLE)
    free = Price(input=0.0) if isinstance(spec, ScriptedSpec | TransformersSpec) else None
    return price_of(spec.model, spec.price or free, Path(table) if table else None)


def cost_of(price: Price | None, tokens_in: int, tokens_out: int) -> float:
    """The cost of so many tokens; 0 without a price."""
    if price is None:
        return 0.0
    return (tokens_in * price.input + tokens_out * price.output) / _MILLION


def _in(prices: Mapping[str, Price], model: str) -> Price | None:
    name = model.lower()
    names = name, name.rpartition("/")[2]
    found = [pattern for pattern in prices if any(fnmatchcase(name, pattern.lower()) for name in names)]
    return prices[max(found, key=len)] if found else None


def _read(file: Path) -> Mapping[str, Price]:
    return read_yaml(file, _Table).prices


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Price]:
    return _read(TABLE)
