"""The report as one HTML page: the templates filled with plain data, data never taken for markup."""

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from dataflow_assets.cli.display import shown_check
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.report.card import card_of
from dataflow_assets.report.gather import ReportData, StepFacts, gather
from dataflow_assets.report.graph import laid_out
from dataflow_assets.report.profile_view import Room, compared, number, percent
from dataflow_assets.report.texts import legible

_FOLDER = "templates"
_MAX_EXAMPLES = 6


def render(work: PipelineWork) -> str:
    """The report of the pipeline as it stands now. Raises CorruptFile, StorageError."""
    return page_of(gather(work))


def page_of(data: ReportData) -> str:
    """The page with this data. Whatever comes from rows is text there, and the page may ask for nothing."""
    room = Room()
    css, script = _file("report.css"), _file("report.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            data=data,
            graph=laid_out({step.name: step.parents for step in data.steps}, _bars(data.steps)),
            profiles={step.name: compared(step.before, step.after, room) for step in data.steps},
            examples={step.name: _examples(data, step.name) for step in data.steps},
            samples={
                "rows": data.samples.rows,
                "steps": [
                    {"name": step.name, "number": step.number, "type": step.type, "parents": step.parents}
                    for step in data.steps
                ],
            },
            card=card_of(data),
            css=css,
            script=script,
            policy=_policy(css, script),
        )
    )


def _examples(data: ReportData, step: str) -> list[dict]:
    """The sampled rows that the step rejected or failed, with their passages; a few."""
    found = [
        passage
        for row in data.samples.rows
        for passage in row["passages"]
        if passage["step"] == step and passage["outcome"] in ("rejected", "failed")
    ]
    return found[:_MAX_EXAMPLES]


def _bars(steps: list[StepFacts]) -> dict[str, tuple[int, int, int]]:
    return {
        step.name: (
            max(0, step.rows_in - step.rejected_rows - step.failed_rows),
            step.rejected_rows,
            step.failed_rows,
        )
        for step in steps
    }


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("dataflow_assets.report", _FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_legible,
    )
    environment.filters |= {
        "number": number,
        "percent": percent,
        "check": shown_check,
        "duration": duration,
        "yaml": as_yaml,
    }
    return environment


def _legible(value: object) -> object:
    """Texts with their control characters visible; what the templates made themselves stays."""
    return legible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _file(name: str) -> str:
    return files("dataflow_assets.report").joinpath(f"{_FOLDER}/{name}").read_text("utf-8")


def _policy(css: str, script: str) -> str:
    """Nothing is loaded, and no script or style runs but the page's own two."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (css, script))
    style_hash, script_hash = hashes
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "base-uri 'none'; form-action 'none'"
    )


def duration(seconds: float) -> str:
    """`0.4 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def as_yaml(value: object) -> str:
    """The value as YAML, as a pipeline file has it."""
    import yaml

    return yaml.safe_dump(value, allow_unicode=True, sort_keys=False, width=100).strip()
