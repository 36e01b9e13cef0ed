"""Recall and precision of `redact_pii` on the samples that are made by rule, as a Markdown table."""

from typing import NamedTuple

from dataflow_assets.operators.refiners.redact import RedactPii
from dataflow_assets.operators.registry import build_operator
from dataflow_assets_tests.operators.refiners.pii_samples import Sample, kinds, samples


class Measured(NamedTuple):
    """Of one kind: samples with and without it, how many of the one were found and of the other taken."""

    kind: str
    positive: int
    found: int
    negative: int
    wrong: int

    @property
    def recall(self) -> float:
        """The share of the positive samples that were found."""
        return self.found / self.positive

    @property
    def precision(self) -> float:
        """The share of the findings that are right."""
        return self.found / (self.found + self.wrong)


def measured() -> list[Measured]:
    """One measure for each kind."""
    operator = build_operator("redact_pii", {"kinds": list(kinds())})
    assert isinstance(operator, RedactPii)
    return [_of_kind(operator, kind) for kind in kinds()]


def _of_kind(operator: RedactPii, kind: str) -> Measured:
    both = samples(kind)
    positive = [sample for sample in both if sample.value is not None]
    negative = [sample for sample in both if sample.value is None]
    found = sum(_is_found(operator, kind, sample) for sample in positive)
    wrong = sum(_is_found(operator, kind, sample) for sample in negative)
    return Measured(kind, len(positive), found, len(negative), wrong)


def is_judged_right(operator: RedactPii, kind: str, sample: Sample) -> bool:
    """Whether the value of the sample is found, or nothing where it has none."""
    return _is_found(operator, kind, sample) == (sample.value is not None)


def _is_found(operator: RedactPii, kind: str, sample: Sample) -> bool:
    """Whether there is just one finding of the kind, and within the value where there is one."""
    spans = [span for span in operator.spans(sample.text) if span.kind == kind]
    if sample.value is None:
        return bool(spans)
    start = sample.text.index(sample.value)
    return len(spans) == 1 and start <= spans[0].start and spans[0].end <= start + len(sample.value)


def table() -> str:
    """The measures as they stand in `docs/pii.md`."""
    head = "| kind | with it | found | without | taken for it | recall | precision |"
    rows = [
        f"| `{kind.kind}` | {kind.positive} | {kind.found} | {kind.negative} | {kind.wrong} "
        f"| {kind.recall:.3f} | {kind.precision:.3f} |"
        for kind in measured()
    ]
    return "\n".join([head, f"|{'---|' * 7}", *rows, ""])
