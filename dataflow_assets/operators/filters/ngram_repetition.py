"""Filters texts that say the same again and again."""

from collections import Counter

from pydantic import Field

from dataflow_assets.operators.operator import ColumnParams, TextFilter
from dataflow_assets.operators.registry import register
from dataflow_assets.text.tokens import characters_or_runs


class _NgramParams(ColumnParams):
    n: int = Field(4, ge=1, le=50, description="Tokens of an n-gram.")
    max_share: float = Field(0.3, ge=0, le=1, description="The largest share of n-grams that come again.")


@register
class FilterNgramRepetition(TextFilter):
    """Keeps the rows whose text does not repeat itself.

    Grain: one row in, at most one out; order, ids and values unchanged. Reads `column` (string). A
    token is one Chinese or Japanese character or a run of other letters and digits; case counts not.
    The share is that of all n-grams of `n` tokens that stand in the text more than once, each place
    after the first counted. A text of fewer than `n` tokens repeats nothing. Rejected rows have the
    reason `repeated_ngrams`.

    Example:
        - {name: varied, type: filter_ngram_repetition, params: {column: answer, n: 4, max_share: 0.2}}
    """

    name = "filter_ngram_repetition"
    version = "2"
    Params = _NgramParams
    params: _NgramParams

    def reason(self, text: str) -> str | None:
        """`repeated_ngrams`, or None."""
        return "repeated_ngrams" if repeated_share(text, self.params.n) > self.params.max_share else None


def repeated_share(text: str, n: int) -> float:
    """The share of the n-grams of a text that stood in it before."""
    tokens = characters_or_runs(text.lower())
    grams = Counter(zip(*(tokens[start:] for start in range(n)), strict=False))
    total = sum(grams.values())
    return (total - len(grams)) / total if total else 0.0
