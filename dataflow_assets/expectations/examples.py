"""Rows that show a broken rule: up to three, each with its batch, its id, its value and a short text."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dataflow_assets.batch import ROW_ID
from dataflow_assets.expectations.drift import as_kept, places_in
from dataflow_assets.expectations.evidence import Evidence
from dataflow_assets.expectations.findings import Finding, compared, rows_of_kind
from dataflow_assets.expectations.targets import Target
from dataflow_assets.io.preview import shown_value
from dataflow_assets.operators.operator import REJECT_REASON
from dataflow_assets.pipeline.rule_grammar import Conflicts, Count, Drift, OfColumn, Rule, ShareOf, StatOf
from dataflow_assets.profiles.making import input_hashes, short_value
from dataflow_assets.profiles.profile import Profile, pair_name
from dataflow_assets.profiles.texts import Texts, near_hashes, pieces_by_hash

MOST = 3
_LARGE = 1e4
_MOST_BATCHES = 5
_TEXT_CHARS, _VALUE_CHARS = 60, 40


@dataclass(frozen=True)
class ExampleRow:
    """A row that a person can look up; value and text are cut, and control characters are escapes."""

    batch: str
    row_id: str
    value: str
    text: str

    def __str__(self) -> str:
        value = f" ({self.value})" if self.value else ""
        return f"{self.batch} {self.row_id}{value} “{self.text}”"


Found = tuple[str, str, object, object]


def examples_of(rule: Rule, target: Target | None, evidence: Evidence, found: Finding) -> list[ExampleRow]:
    """Rows that show why the rule is broken; none where no row does. Raises CorruptFile, StorageError."""
    rows: list[ExampleRow] = []
    for batch, row_id, value, text in _found(_one_sided(rule, found), target, evidence, found):
        shown = "" if value is None else shown_value(value, _VALUE_CHARS)
        rows.append(ExampleRow(batch, shown_value(row_id, _TEXT_CHARS), shown, _text(text)))
        if len(rows) == MOST:
            break
    return rows


def _one_sided(rule: Rule, found: Finding) -> Rule:
    """The half of a rule with `=` that is broken."""
    if rule.op != "=" or found.value is None:
        return rule
    return replace(rule, op="<=" if found.value > rule.limit else ">=")


def _text(value: object) -> str:
    return "" if value is None else shown_value(value, _TEXT_CHARS)


def _found(rule: Rule, target: Target | None, evidence: Evidence, found: Finding) -> Iterable[Found]:
    value, too_many = rule.value, rule.op in ("<=", "<")
    if isinstance(value, Count):
        return _dropped(value, evidence) if too_many != (value.of == "kept") else ()
    if isinstance(value, Conflicts):
        return _conflicts(value, evidence) if too_many else ()
    assert target is not None
    if isinstance(value, OfColumn):
        return _of_column(value, too_many, target, evidence)
    if isinstance(value, ShareOf) and isinstance(value.operand, str):
        return _with_label(value.operand, too_many, target, evidence)
    if isinstance(value, Drift) and isinstance(found.distance and found.distance.grown, str):
        assert found.distance is not None
        return _with_label(str(found.distance.grown), True, target, evidence)
    return _sampled(rule, target, evidence, found)


def _sampled(rule: Rule, target: Target, evidence: Evidence, found: Finding) -> Iterator[Found]:
    """Rows of the sample whose measure is such, the furthest first."""
    values = evidence.profile.deep_values(target.column, target.measure)
    there = ~np.isnan(values)
    value = rule.value
    lowest_first = False
    if isinstance(value, StatOf):
        wanted = ~compared(values, target, rule.op, rule.limit)
        lowest_first = rule.op in (">=", ">")
    elif isinstance(value, ShareOf):
        assert not isinstance(value.operand, str)
        wanted = compared(values, target, value.op, value.operand)
        lowest_first = value.op in ("<", "<=")
        if rule.op in (">=", ">"):
            wanted, lowest_first = ~wanted, not lowest_first
    else:
        assert isinstance(value, Drift) and found.distance is not None
        reference = evidence.reference(value.reference)
        assert reference is not None
        edges = reference["columns"][target.column]["numbers"][target.measure]["edges"]
        wanted = places_in(edges, as_kept(reference, values)) == found.distance.grown
    places = np.flatnonzero(wanted & there)
    order = np.argsort(values[places] if lowest_first else -values[places], kind="stable")
    yield from _at(places[order], values, target, evidence)


def _at(places: Iterable[int], values: np.ndarray, target: Target, evidence: Evidence) -> Iterator[Found]:
    sample = evidence.profile.sample
    for place in places:
        batch, row_id = sample.batches[place], sample.row_ids[place]
        number = float(values[place])
        text = _said_by(evidence.row(batch, row_id), target.column, evidence)
        yield batch, row_id, _shown_number(number), text


def _shown_number(number: float) -> float:
    """Four figures, of large numbers those before the point."""
    if number.is_integer():
        return int(number)
    return float(f"{number:.4g}") if abs(number) < _LARGE else number


def _said_by(row: dict[str, object], column: str | None, evidence: Evidence) -> object:
    """The text of the column, else that of the first column of texts."""
    schema = evidence.schema
    if column in row and schema.get(column) in ("string", "json"):
        return row[column]
    texts = [name for name, kind in schema.items() if kind == "string" and name != ROW_ID]
    return row.get("text" if "text" in texts else texts[0]) if texts else None


def _with_label(label: str, wants_it: bool, target: Target, evidence: Evidence) -> Iterator[Found]:
    """Rows with this label or value, or with another one."""
    profile = evidence.profile
    if target.kind == "value":

        def chosen(table: pa.Table) -> Iterator[int]:
            for place, found in enumerate(table[target.column].to_pylist()):
                shown = short_value(found) if isinstance(found, str) else str(found).lower()
                if found is not None and (shown == short_value(label)) == wants_it:
                    yield place

        for batch, row in _rows_where(evidence, [target.column], chosen):
            yield batch, str(row[ROW_ID]), row[target.column], _said_by(row, None, evidence)
        return
    labels = profile.columns[target.column].sampled.labels[target.measure]
    for place, found in enumerate(labels):
        if found is not None and (found == label) == wants_it:
            batch, row_id = profile.sample.batches[place], profile.sample.row_ids[place]
            yield batch, row_id, found, _said_by(evidence.row(batch, row_id), target.column, evidence)


def _of_column(value: OfColumn, too_many: bool, target: Target, evidence: Evidence) -> Iterable[Found]:
    if value.what == "null":
        return _nulls(target.column, too_many, evidence)
    if value.what == "distinct" or not too_many:
        return ()
    if value.what == "boilerplate":
        return _with_piece(target.column, evidence)
    return _repeated(value.what, target.column, evidence)


def _nulls(column: str, wants_null: bool, evidence: Evidence) -> Iterator[Found]:
    """Rows without a value, or with one."""

    def chosen(table: pa.Table) -> Iterable[int]:
        return np.flatnonzero(table[column].is_null().to_numpy() == wants_null).tolist()

    def has_one(part: Profile) -> bool:
        nulls = part.columns[column].nulls if column in part.columns else part.rows
        return (nulls if wants_null else part.rows - nulls) > 0

    pairs = zip(evidence.records, evidence.parts, strict=True)
    having = {record.batch for record, part in pairs if has_one(part)}
    for batch, row in _rows_where(evidence, [column], chosen, having):
        yield batch, str(row[ROW_ID]), row[column], _said_by(row, None, evidence)


def _repeated(what: str, column: str, evidence: Evidence) -> Iterator[Found]:
    """Rows whose value is there more than once, or nearly."""
    profile = evidence.profile.columns[column]
    contents = profile.near if what == "near_duplicates" else profile.contents
    if contents is None:
        return
    repeated = contents.hashes[contents.counts > 1]

    def chosen(table: pa.Table) -> Iterable[int]:
        texts = Texts.of(table[column])
        hashes = near_hashes(texts, 1.0) if contents is profile.near else texts.hashes[texts.is_there]
        return np.flatnonzero(texts.is_there)[np.isin(hashes, repeated)].tolist()

    for batch, row in _rows_where(evidence, [column], chosen):
        yield batch, str(row[ROW_ID]), None, row[column]


def _with_piece(column: str, evidence: Evidence) -> Iterator[Found]:
    """Rows of the sample that share the line or sentence that most have."""
    pieces = evidence.profile.columns[column].sampled.pieces or []
    counts = Counter(piece for text in pieces for piece in text or ())
    if not counts:
        return
    most = max(counts, key=lambda piece: counts[piece])
    sample = evidence.profile.sample
    for place, found in enumerate(pieces):
        if most in (found or ()):
            batch, row_id = sample.batches[place], sample.row_ids[place]
            text = evidence.row(batch, row_id).get(column)
            yield batch, row_id, None, pieces_by_hash(str(text)).get(most, text)


def _conflicts(value: Conflicts, evidence: Evidence) -> Iterator[Found]:
    """Rows whose inputs come with more than one label, those of one input beside each other."""
    joint = evidence.profile.pairs[pair_name(value.inputs, value.label)]
    wanted = joint.inputs.hashes[joint.conflicting]

    def chosen(table: pa.Table) -> Iterable[int]:
        inputs = input_hashes(table, value.inputs)
        places = np.flatnonzero(np.isin(inputs, wanted))
        return places[np.argsort(inputs[places], kind="stable")].tolist()

    for batch, row in _rows_where(evidence, [*value.inputs, value.label], chosen):
        label = row[value.label]
        yield batch, str(row[ROW_ID]), "null" if label is None else label, row[value.inputs[0]]


def _dropped(value: Count, evidence: Evidence) -> Iterator[Found]:
    """Rows that were rejected or failed."""
    if value.of == "rows":
        return
    parts = ("rejected", "failed") if value.of == "kept" else (value.of,)
    for record in evidence.records:
        for part in parts:
            counted = Count(part, value.reason if part == "rejected" else None)
            table = evidence.rows(record, part) if rows_of_kind(counted, record) else None
            for row in table.slice(0, 1000).to_pylist() if table is not None else ():
                why = row.get(REJECT_REASON if part == "rejected" else "error_class")
                if value.reason in (None, why):
                    yield record.batch, str(row[ROW_ID]), why, _said_by(row, None, evidence)


def _rows_where(
    evidence: Evidence,
    columns: Sequence[str],
    chosen: Callable[[pa.Table], Iterable[int]],
    batches: set[str] | None = None,
) -> Iterator[tuple[str, dict[str, object]]]:
    """The chosen rows of the first batches, or of the first of these, that have the columns."""
    looked_at = 0
    for record in evidence.records:
        if not record.rows_out or (batches is not None and record.batch not in batches):
            continue
        table = evidence.rows(record)
        if table is None or not set(columns) <= set(table.column_names):
            continue
        for place in list(chosen(table))[:MOST]:
            yield record.batch, table.slice(place, 1).to_pylist()[0]
        looked_at += 1
        if looked_at == _MOST_BATCHES:
            return
