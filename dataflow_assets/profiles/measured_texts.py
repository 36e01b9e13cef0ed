"""All that is measured of each text of a sample; what was measured a moment ago is not measured again."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dataflow_assets.profiles.languages import language_at_a_glance
from dataflow_assets.profiles.remembered import Remembered
from dataflow_assets.profiles.texts import TEXT_MEASURES, Tokenize, piece_hashes, text_measures


class _OfText(NamedTuple):
    """The measures of one text in the order of `text_measures`, its language and its pieces."""

    measures: np.ndarray
    language: str | None
    pieces: list[int]


class MeasuredTexts(NamedTuple):
    """The measures by name, the languages and the pieces; one value of each for each text."""

    measures: dict[str, np.ndarray]
    languages: list[str | None]
    pieces: list[list[int]]


_MEASURES = tuple(TEXT_MEASURES)
_remembered: Remembered[tuple[int, Tokenize | None], _OfText] = Remembered(8192)


def measured_texts(texts: Sequence[str], hashes: np.ndarray, tokenize: Tokenize | None) -> MeasuredTexts:
    """Measures texts, whose 64-bit hashes these are."""
    keys = [(value, tokenize) for value in hashes.tolist()]
    found = {key: value for key in keys if (value := _remembered.get(key)) is not None}
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
    if missing:
        measures = text_measures(list(missing.values()), tokenize)
        table = np.column_stack([measures[name] for name in _MEASURES]).astype(np.float32)
        for (key, text), row in zip(missing.items(), table, strict=True):
            found[key] = _OfText(row.copy(), language_at_a_glance(text), piece_hashes(text))
            _remembered.keep(key, found[key])
    listed = [found[key] for key in keys]
    rows = np.array([each.measures for each in listed], np.float32).reshape(-1, len(_MEASURES))
    return MeasuredTexts(
        dict(zip(_MEASURES, rows.T, strict=True)),
        [each.language for each in listed],
        [each.pieces for each in listed],
    )
