"""`dataflow-assets profile`: what the data of a step is like, to look at or to keep as a reference."""

from pathlib import Path

import click

from dataflow_assets.cli.console import pipeline_option, print_line, print_table, shown_path, work_of
from dataflow_assets.expectations.messages import number_text, percent
from dataflow_assets.expectations.references import profile_file
from dataflow_assets.exports.target import check_not_read
from dataflow_assets.io import atomic
from dataflow_assets.io.preview import shown_value
from dataflow_assets.pipeline_work import SOURCE
from dataflow_assets.profiles import Profile, profile_of

_SHOWN = ("min", "p05", "p50", "p95", "max", "mean")
_MOST_VALUES = 5


@click.command("profile")
@pipeline_option
@click.option("--step", metavar="STEP", help="A step, or `source` [default: the last step].")
@click.option("--to", metavar="FILE.json", help="Write it to a file, which rules of `expect` can name.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON that --to writes.")
def profile_command(pipeline: str, root: str | None, step: str | None, to: str | None, as_json: bool) -> None:
    """What the rows of a step are like: measures, shares, duplicates, frequent values."""
    work = work_of(pipeline, root)
    name = step or work.pipeline.ordered_steps[-1].name
    if name != SOURCE:
        work.pipeline.step(name)
    work.known_manifest()
    found = profile_of(work, name)
    data = profile_file(found, work.pipeline.name, name)
    if to is not None:
        path = Path(to).absolute()
        check_not_read(work, path)
        atomic.make_folder(path.parent)
        atomic.write_atomically(path, data)
        print_line(f"{name}: the profile of {found.rows:,} rows is in {shown_path(path)}")
    elif as_json:
        click.echo(data.decode(), nl=False)
    else:
        _print_profile(found, name)


def _print_profile(profile: Profile, step: str) -> None:
    plain = profile.as_json()
    sampled = plain["sampled_rows"]
    print_line(f"{step}: {profile.rows:,} rows, {sampled:,} of them measured in all ways")
    rows = [
        (column, measure, f"{numbers['count']:,}", *(number_text(numbers[name]) for name in _SHOWN))
        for column, found in plain["columns"].items()
        for measure, numbers in found["measures"].items()
    ]
    if rows:
        print_table(("column", "measure", "rows", *_SHOWN), rows, right=("rows", *_SHOWN))
    for column, found in plain["columns"].items():
        print_line(f"{column}: {', '.join(_facts(found))}")


def _facts(column: dict) -> list[str]:
    """What is known of a column beside its measures."""
    facts = [column["type"], f"{column['nulls']:,} nulls"]
    if "distinct" in column:
        facts.append(f"{'' if column['distinct_is_exact'] else 'about '}{column['distinct']:,} values")
    for name in ("duplicates", "near_duplicates", "boilerplate"):
        if column.get(name) is not None:
            facts.append(f"{name} {percent(column[name])}")
    for label, shares in column["shares"].items():
        facts.append(f"{label} " + ", ".join(f"{key} {percent(share)}" for key, share in shares.items()))
    if top := column.get("top"):
        values = ", ".join(
            f"{shown_value(each['value'], 40)} {each['count']:,}" for each in top[:_MOST_VALUES]
        )
        facts.append(f"frequent: {values}")
    return facts
