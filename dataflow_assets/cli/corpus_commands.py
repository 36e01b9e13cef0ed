"""`dataflow-assets corpus`: data sets of conversations in a database."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dataflow_assets.cli.console import pipeline_option, print_line, print_table, work_of
from dataflow_assets.cli.look_commands import as_json, print_json
from dataflow_assets.errors import ConfigError
from dataflow_assets.pipeline_work import DEFAULT_ROOT, ROOT_VARIABLE

if TYPE_CHECKING:
    from dataflow_assets.corpora.queries import TurnQuery
    from dataflow_assets.corpora.shapes import Shape
    from dataflow_assets.corpora.store import Corpora, Put
    from dataflow_assets.sources.reading_spec import ReadingSpec

STORE_VARIABLE = "DATAFLOW_CORPORA"
_FILE = "corpora.sqlite"
_PREVIEW_CHARS = 60
_COLUMNS = ("data_system", "data_prompt", "data_reasoning", "data_response")
_store = click.option(
    "--store",
    metavar="FILE|URL",
    help=f"A file, postgresql://… or mysql://… [default: {STORE_VARIABLE}, else {_FILE} in the root].",
)


def _place(store: str | None) -> str:
    root = os.environ.get(ROOT_VARIABLE) or DEFAULT_ROOT
    return store or os.environ.get(STORE_VARIABLE) or str(Path(root) / _FILE)


@contextmanager
def _opened(store: str | None, create: bool = False) -> "Iterator[Corpora]":
    from dataflow_assets.corpora.store import Corpora

    with Corpora(_place(store), create) as corpora:
        yield corpora


def _which_turns(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which turns are meant; the command gets them as one `query`."""

    @wraps(command)
    def with_query(**given: Any) -> None:
        from dataflow_assets.corpora.queries import TurnQuery

        columns = given.pop("columns") or _COLUMNS
        names = ("rows", "turn_ids", "missing", "present", "min_weight", "max_weight", "ignore_case", "text")
        command(query=TurnQuery(columns=columns, **{name: given.pop(name) for name in names}), **given)

    options = (
        click.option("--row", "rows", multiple=True, type=int, metavar="N", help="Conversation N."),
        click.option(
            "--turn", "turn_ids", multiple=True, type=int, metavar="ID", help="The turn of this id."
        ),
        click.option("--text", metavar="TEXT", help="Turns that hold this text, as it stands."),
        click.option("--in", "columns", multiple=True, metavar="COLUMN", help="Look for the text only here."),
        click.option("--ignore-case", is_flag=True, help="Whatever the case of the text."),
        click.option("--missing", multiple=True, metavar="COLUMN", help="Turns without a value here."),
        click.option("--present", multiple=True, metavar="COLUMN", help="Turns with a value here."),
        click.option("--min-weight", type=float, help="Turns of at least this weight."),
        click.option("--max-weight", type=float, help="Turns of at most this weight."),
    )
    for option in reversed(options):
        with_query = option(with_query)
    return with_query


def _shape_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which columns are the conversation; the command gets them as one `shape`."""

    @wraps(command)
    def with_shape(**given: Any) -> None:
        names = ("messages", "sharegpt", "tools", "system", "prompt", "reasoning", "response", "weight")
        command(shape=_shape(**{name: given.pop(name) for name in names}), **given)

    options = (
        click.option("--messages", metavar="COLUMN", help="The column with messages of role and content."),
        click.option("--sharegpt", metavar="COLUMN", help="The column with messages of from and value."),
        click.option("--tools", metavar="COLUMN", help="The column with the tools."),
        *(
            click.option(f"--{name}", metavar="COLUMN", help=f"The column with the {name} of the only turn.")
            for name in ("system", "prompt", "reasoning", "response", "weight")
        ),
    )
    for option in reversed(options):
        with_shape = option(with_shape)
    return with_shape


def _shape(
    messages: str | None, sharegpt: str | None, tools: str | None, **columns: str | None
) -> "Shape | None":
    from dataflow_assets.corpora.shapes import Shape

    named = {name: column for name, column in columns.items() if column}
    given = [one for one in (messages, sharegpt, named) if one]
    if not given and not tools:
        return None
    if len(given) != 1:
        raise ConfigError(
            "expected one of --messages, --sharegpt, or columns of one turn such as --prompt and --response"
        )
    if named:
        return Shape("columns", "", named, tools or "")
    kind = "messages" if messages else "sharegpt"
    return Shape(kind, messages or sharegpt or "", {}, tools or "")


@click.group("corpus")
def corpus_group() -> None:
    """Data sets of conversations in a database: a row a turn, in SQLite, PostgreSQL, MySQL or MariaDB."""


@corpus_group.command("import")
@click.argument("dataset")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE…")
@_store
@_shape_options
@click.option("--replace", is_flag=True, help="Put a file in the place of another of its name.")
def import_command(
    dataset: str, sources: tuple[str, ...], store: str | None, shape: "Shape | None", replace: bool
) -> None:
    """Put files, folders, or one hf:… into a data set, which is made where it is not there.

    Killed, the same command goes on; a file that is there whole is passed over.
    """
    from dataflow_assets.control import held_signals
    from dataflow_assets.corpora.importing import import_source

    spec = _source(sources)
    with _opened(store, create=True) as corpora, held_signals() as stop:
        done = import_source(corpora, dataset, spec, Path.cwd(), stop, shape, replace)
    print_line(f"{dataset}: {_shown(done.put)}; {done.read} read, {done.passed_over} passed over")
    for reason, count in done.bad.items():
        print_line(f"  {count:,} records were not read: {reason}")
    if done.missing and done.beside:
        options = " and ".join(f"--{name}" for name in done.missing)
        print_line(
            f"  no column is the {' or the '.join(done.missing)}; kept beside the turns, not as their text: "
            f"{', '.join(done.beside)} (say with {options} if one of them is; that needs another data set)"
        )


def _source(sources: tuple[str, ...]) -> "ReadingSpec":
    from pydantic import TypeAdapter, ValidationError

    from dataflow_assets.sources.kinds import AnySource

    given = sources[0] if len(sources) == 1 else {"path": list(sources)}
    try:
        return TypeAdapter(AnySource).validate_python(given)
    except ValidationError as error:
        raise ConfigError([str(problem["msg"]) for problem in error.errors()]) from None


def _shown(put: "Put") -> str:
    return (
        f"{put.conversations:,} new conversations, {put.new:,} new turns, {put.replaced:,} replaced, "
        f"{put.unchanged:,} as they were, {put.removed:,} removed"
        + (
            f", {put.deleted:,} soft-deleted, {put.restored:,} brought back"
            if put.deleted or put.restored
            else ""
        )
    )


@corpus_group.command("list")
@_store
@as_json
def list_command(store: str | None, as_json: bool) -> None:
    """The data sets, in numbers."""
    with _opened(store) as corpora:
        found = corpora.datasets()
    if as_json:
        print_json([one._asdict() for one in found])
        return
    headers = ("data set", "conversations", "turns", "deleted turns")
    rows = [(one.name, *(f"{number:,}" for number in one[1:])) for one in found]
    print_table(headers, rows, right=headers[1:])


@corpus_group.command()
@click.argument("dataset")
@_store
@_which_turns
@click.option("--deleted", type=click.Choice(("no", "only", "too")), default="no", help="Soft-deleted turns.")
@click.option("--after", type=int, default=0, metavar="ID", help="Only turns behind the one of this id.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many turns.")
@as_json
def show(
    dataset: str,
    store: str | None,
    query: "TurnQuery",
    deleted: Any,
    after: int,
    limit: int,
    as_json: bool,
) -> None:
    """A page of turns, in the order of the data set; the last line says how to get the next one."""
    from dataflow_assets.io.preview import shown_value

    with _opened(store) as corpora:
        turns = corpora.turns(corpora.dataset(dataset), query._replace(deleted=deleted), after, limit)
    if as_json:
        print_json([{str(name): value for name, value in turn._mapping.items()} for turn in turns])
        return
    headers = ("id", "row", "turn", "prompt", "response", "weight", "deleted")
    texts = [
        [
            shown_value(text, _PREVIEW_CHARS) if text is not None else ""
            for text in (one.data_prompt, one.data_response)
        ]
        for one in turns
    ]
    rows = [
        (
            one.id,
            one.row_identifier,
            one.turn_taking,
            *cells,
            "" if one.data_weight is None else one.data_weight,
            "yes" if one.is_deleted else "",
        )
        for one, cells in zip(turns, texts, strict=True)
    ]
    print_table(headers, rows, right=headers[:3])
    if len(turns) == limit:
        print_line(f"more may follow: --after {turns[-1].id}")


@corpus_group.command()
@click.argument("dataset")
@click.argument("row", type=int)
@_store
def cat(dataset: str, row: int, store: str | None) -> None:
    """One conversation as it would be exported, as JSON."""
    from dataflow_assets.corpora.queries import TurnQuery

    with _opened(store) as corpora:
        found = list(corpora.conversations(corpora.dataset(dataset), query=TurnQuery(rows=[row])))
    if not found:
        raise ConfigError(f"the data set {dataset!r} has no conversation {row}, or it is deleted")
    print_json(found[0][1])


def _marking(deleted: bool) -> Callable[..., None]:
    def mark(dataset: str, store: str | None, query: "TurnQuery", all_turns: bool) -> None:
        from dataflow_assets.corpora.queries import TurnQuery

        if query._replace(columns=_COLUMNS, ignore_case=False) == TurnQuery() and not all_turns:
            raise ConfigError("nothing says which turns; give --row, --turn, --text and so on, or --all")
        with _opened(store) as corpora:
            found = corpora.dataset(dataset)
            count = corpora.mark_deleted(found, query._replace(deleted="too"), deleted)
        print_line(f"{count:,} turns {'deleted' if deleted else 'restored'}")

    return mark


def _marking_command(name: str, deleted: bool, help: str) -> None:
    command = click.option("--all", "all_turns", is_flag=True, help="All turns of the data set.")(
        _which_turns(_marking(deleted))
    )
    corpus_group.command(name, help=help)(click.argument("dataset")(_store(command)))


_marking_command(
    "delete", True, "Soft-delete turns: they are no longer read, and `restore` brings them back."
)
_marking_command("restore", False, "Bring soft-deleted turns back.")


@corpus_group.command()
@click.argument("dataset")
@_store
@click.option("--to", required=True, metavar="FILE", help="The file; its ending says the format.")
@click.option("--row-id", "with_row_id", is_flag=True, help="With the id that each conversation came with.")
def export(dataset: str, store: str | None, to: str, with_row_id: bool) -> None:
    """Write the conversations to a file, as they came: .jsonl, .json, .csv, .parquet or .pickle."""
    from dataflow_assets.batch import ROW_ID, arrow_schema
    from dataflow_assets.exports.file import format_of, write_file

    path = Path(to)
    format = format_of(path)
    with _opened(store) as corpora:
        found = corpora.dataset(dataset)
        names = [*([ROW_ID] if with_row_id else []), *found.columns]
        tables = (table.select(names) for table in corpora.tables(found))
        schema = arrow_schema({name: found.columns.get(name, "string") for name in names})
        rows = write_file(path, format, tables, schema)
    print_line(f"{rows:,} conversations in {to}")


_partial = click.option("--allow-partial", is_flag=True, help="Although rows failed or batches are missing.")
_step = click.option("--step", help="The step whose rows are taken [default: the last one].")


@corpus_group.command()
@pipeline_option
@click.option("--dataset", required=True, metavar="NAME", help="The data set; made where it is not there.")
@_step
@_store
@_shape_options
@_partial
@click.option("--exactly", is_flag=True, help="Soft-delete the conversations that the step does not have.")
def put(
    pipeline: str,
    root: str | None,
    dataset: str,
    step: str | None,
    store: str | None,
    shape: "Shape | None",
    allow_partial: bool,
    exactly: bool,
) -> None:
    """Put the rows of a step of a pipeline into a data set; done again, it changes nothing."""
    from dataflow_assets.control import held_signals
    from dataflow_assets.corpora.sinking import put_step

    work = work_of(pipeline, root)
    with _opened(store, create=True) as corpora, held_signals() as stop:
        done = put_step(work, step, corpora, dataset, stop, shape, allow_partial, exactly)
    print_line(f"{dataset}: {_shown(done)}")


@corpus_group.command("write-back")
@pipeline_option
@click.option("--write", multiple=True, required=True, metavar="COLUMN", help="A column to write back.")
@_step
@_partial
def write_back(
    pipeline: str, root: str | None, write: tuple[str, ...], step: str | None, allow_partial: bool
) -> None:
    """Write columns of a step back to the turns that its rows are; the source is `corpus`, `rows: turns`."""
    from dataflow_assets.control import held_signals
    from dataflow_assets.corpora.sinking import write_back_step
    from dataflow_assets.sources.sql.corpus_pieces import place_of

    work = work_of(pipeline, root)
    with _opened(place_of(work.pipeline.source, work.pipeline.base_dir)) as corpora, held_signals() as stop:
        done = write_back_step(work, step, corpora, write, stop, allow_partial)
    already = f", {done.were_so:,} had these values already" if done.were_so else ""
    print_line(f"{done.written:,} turns written{already}")


@corpus_group.command()
@click.argument("pipeline", metavar="PIPELINE|FILE")
@click.option("--task", metavar="NAME", help="The name of the task [default: the pipeline's].")
@click.option("--stage", default="main", show_default=True, help="The stage of the task.")
@click.option(
    "--write", multiple=True, metavar="COLUMN", help="What is written back [default: what changes]."
)
@click.option("--batch-rows", type=click.IntRange(min=1), help="Turns in a transaction.")
def enhance(
    pipeline: str, task: str | None, stage: str, write: tuple[str, ...], batch_rows: int | None
) -> None:
    """Put the turns of a data set through the steps of a pipeline, and write them back in place.

    The source of the pipeline is `corpus` with `rows: turns`. Killed, the same command goes on.
    """
    from dataflow_assets.control import held_signals
    from dataflow_assets.corpora.enhancing import enhance
    from dataflow_assets.corpora.pipeline_enhancing import enhancement_of_pipeline
    from dataflow_assets.pipeline.catalog import find_pipeline
    from dataflow_assets.sources.sql.corpus_pieces import place_of

    found = find_pipeline(pipeline)
    work = enhancement_of_pipeline(found, task, stage, write, batch_rows)
    with _opened(place_of(found.source, found.base_dir)) as corpora, held_signals() as stop:
        dataset = corpora.dataset(work.dataset)
        done = enhance(corpora, dataset, work, stop)
        later = corpora.row_count(dataset) - done.rows_before
    print_line(
        f"{done.task}: {done.processed:,} turns, {done.changed:,} written, {done.rejected:,} rejected and "
        f"{done.failed:,} failed, which stay as they were"
    )
    if later > 0:
        print_line(
            f"{later:,} turns came after the task began and are not of it; `dataflow-assets corpus forget`, "
            "or another --task, begins with all turns"
        )


@corpus_group.command()
@_store
@as_json
def tasks(store: str | None, as_json: bool) -> None:
    """Where imports and enhancements stand."""
    with _opened(store) as corpora:
        found = corpora.tasks()
    if as_json:
        print_json([{"dataset": name, **cursor._asdict()} for name, cursor in found])
        return
    headers = (
        "task",
        "stage",
        "type",
        "data set",
        "done",
        "processed",
        "changed",
        "rejected",
        "failed",
        "at id",
    )
    rows = [
        (
            one.task,
            one.stage,
            one.type,
            name,
            "yes" if one.is_done else "no",
            one.processed,
            one.changed,
            one.rejected,
            one.failed,
            one.offset_key,
        )
        for name, one in found
    ]
    print_table(headers, rows, right=headers[5:])


@corpus_group.command()
@click.argument("dataset")
@click.argument("task")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many turns.")
@_store
def left(dataset: str, task: str, limit: int, store: str | None) -> None:
    """The turns that an enhancement left as they were, and why."""
    with _opened(store) as corpora:
        found = corpora.left(corpora.dataset(dataset), task, limit)
    print_table(("turn", "what", "reason"), [(one.turn_id, one.kind, one.reason) for one in found])


@corpus_group.command()
@click.argument("dataset")
@click.argument("task")
@click.option("--stage", default="main", show_default=True, help="The stage of the task.")
@_store
def forget(dataset: str, task: str, stage: str, store: str | None) -> None:
    """Forget how far an enhancement has come: done again, it begins anew. What it wrote stays."""
    from dataflow_assets.corpora.enhancing import forget_task

    with _opened(store) as corpora:
        forget_task(corpora, corpora.dataset(dataset), task, stage)
    print_line(f"{task} is forgotten")
