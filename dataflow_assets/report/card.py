"""The data card: how a data set was made and what it is like, in Markdown for a Hugging Face data set."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import yaml

from dataflow_assets.cli.display import shown_check
from dataflow_assets.io.preview import markdown_table, visible
from dataflow_assets.report.gather import ReportData, StepFacts
from dataflow_assets.report.profile_view import fact_text, number, percent, rows_of_measures

_LANGUAGE_SHARE = 0.05
_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
    (10**8, "10M<n<100M"),
    (10**9, "100M<n<1B"),
)
_PROFILE_MEASURES = ("chars", "words", "tokens", "value", "turns", "turn_chars", "turn_tokens")


def card_of(data: ReportData) -> str:
    """The card, its front matter first. What comes from rows is escaped."""
    sections = [
        _front_matter(data),
        f"# {data.pipeline}",
        *filter(None, [visible(data.description)]),
        "## How it was made",
        _how(data),
        _table(
            ("step", "what it does", "rows in", "rows out", "rejected", "failed"),
            [
                (
                    f"{step.number} {step.name} ({step.type})",
                    step.about,
                    f"{step.rows_in:,}",
                    f"{step.rows_out:,}",
                    f"{step.rejected_rows:,}",
                    f"{step.failed_rows:,}",
                )
                for step in data.made_steps
            ],
        ),
        *_dropped(data),
        *_columns(data.last),
        *_profile(data.last),
        *_checks(data),
        "## To be said by a person",
        "Where the source comes from and under which licence, whether it holds personal data, what the data "
        "set is for and what it must not be used for.",
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(data: ReportData) -> str:
    fields: dict[str, object] = {"pretty_name": data.pipeline}
    if languages := languages_of(data):
        fields["language"] = languages
    if data.license:
        fields["license"] = data.license
    fields["size_categories"] = [size_category(data.last.rows_out)]
    fields["tags"] = ["dataflow_assets", *(["synthetic"] if data.asks_models else [])]
    return f"---\n{yaml.safe_dump(fields, allow_unicode=True, sort_keys=False).strip()}\n---"


def size_category(rows: int) -> str:
    """The word of Hugging Face for so many rows."""
    return next((name for most, name in _SIZES if rows < most), "n>1B")


def languages_of(data: ReportData) -> list[str]:
    """The languages that one text in twenty, or more, of the column with the longest texts has."""
    columns = ((data.last.after or {}).get("columns") or {}).values()
    texts = [column for column in columns if (column.get("shares") or {}).get("language")]
    if not texts:
        return []
    main = max(texts, key=lambda column: column.get("measures", {}).get("chars", {}).get("mean", 0))
    frequent = sorted(main["shares"]["language"].items(), key=lambda pair: -pair[1])
    return [name for name, share in frequent if share >= _LANGUAGE_SHARE and name.isalpha() and len(name) < 4]


def _how(data: ReportData) -> str:
    read = f"{data.source_step.rows_out:,} rows were read"
    unreadable = data.source_step.rejected_rows
    bad = f"; records of the source that were no rows: {unreadable:,}" if unreadable else ""
    made = f" and {data.last.rows_out:,} came out of {len(data.made_steps)} steps"
    versions = ", ".join(f"{name} {version}" for name, version in data.versions.items())
    lines = [f"{read}{made}{bad}. Pipeline state: {data.state}. Made with {versions}."]
    if data.usage:
        lines.append(
            f"Models were asked {number(data.usage.get('calls'))} times: "
            f"{number(data.usage.get('tokens_in'))} tokens in, {number(data.usage.get('tokens_out'))} out."
        )
    if data.models:
        lines.append(f"Models: {', '.join(map(visible, data.models))}.")
    return " ".join(lines)


def _dropped(data: ReportData) -> Iterator[str]:
    lines = [
        (step.name, kind, reason, f"{count:,}", percent(count / step.rows_in) if step.rows_in else "")
        for step in data.steps
        for kind, counts in (("rejected", step.rejected), ("failed", step.failed))
        for reason, count in counts.items()
    ]
    if lines:
        yield "## Rows that were left out"
        yield _table(("step", "how", "reason", "rows", "of the rows that came in"), lines)


def _columns(last: StepFacts) -> Iterator[str]:
    profile = (last.after or {}).get("columns") or {}
    lines = []
    for name, kind in last.columns.items():
        column = profile.get(name, {})
        facts = [
            f"{fact.replace('_', ' ')} {fact_text(column, fact)}"
            for fact in ("nulls", "distinct", "duplicates", "near_duplicates")
            if column.get(fact) is not None
        ]
        lines.append((name, kind, ", ".join(facts)))
    if lines:
        yield "## Columns"
        yield _table(("column", "type", "what is in it"), lines)


def _profile(last: StepFacts) -> Iterator[str]:
    keys = ("min", "p05", "p50", "p95", "max", "mean")
    lines = [
        (name, measure.replace("_", " "), *(number(numbers.get(key)) for key in keys))
        for name, measure, numbers in rows_of_measures(last.after)
        if measure in _PROFILE_MEASURES
    ]
    if lines:
        yield "## Profile"
        yield _table(("column", "measure", "min", "5%", "median", "95%", "max", "mean"), lines)


def _checks(data: ReportData) -> Iterator[str]:
    if data.alarms:
        yield "## Checks"
        yield _table(("step", "check"), [(step.name, shown_check(check)) for step, check in data.alarms])


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    columns = [pa.array([row[place] for row in rows], pa.large_string()) for place in range(len(headers))]
    return markdown_table(pa.Table.from_arrays(columns, names=list(headers)))
