"""What every operator says of itself: a docstring in the fixed form, parameters, an example that runs."""

import inspect
import itertools
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from dataflow_assets.batch import ColumnType, Schema, schema_of, table_of
from dataflow_assets.engines.engine import check_law
from dataflow_assets.errors import ConfigError
from dataflow_assets.operators import DatasetOperator, Operator, RowOperator, build_operator
from dataflow_assets.operators.catalog import by_kind, described, kind_of
from dataflow_assets.operators.models.model_operator import ModelOperator
from dataflow_assets.operators.registry import operators
from dataflow_assets.operators_page import page

TREE = Path(__file__).parents[2]
SHIPPED = {name: cls for name, cls in operators().items() if cls.__module__.startswith("dataflow_assets.")}
EVERY = pytest.mark.parametrize("cls", SHIPPED.values(), ids=list(SHIPPED))

# For examples that name code of a user, or columns and files that only they know.
FUNCTIONS = {
    "map_python": "dataflow_assets_tests.operators.python_functions:give",
    "map_arrow": "dataflow_assets_tests.operators.batch_functions:odd_only",
    "map_pandas": "dataflow_assets_tests.operators.batch_functions:frame_odd",
}
COLUMNS: dict[str, Schema] = {
    "sql": {"domain": "string", "score": "float64"},
    **{name: {"n": "int64", "give": "json"} for name in FUNCTIONS},
}
FILES = {"decontaminate": {"benchmarks/gsm8k.jsonl": '{"question": "How many sheep?"}\n'}}

VALUES: dict[ColumnType, list] = {
    "string": ["One sentence. 还有一句。", "", "<b>a</b> https://b.c 12", None],
    "float64": [1.5, -2.0, 3.0, None],
    "int64": [1, 2, 3, None],
    "json": [{}, {}, {}, None],
}


def steps_of(cls: type[Operator], folder: Path) -> list[Operator]:
    """The operators of the steps of the example; files that it names are in `folder`."""
    for name, text in FILES.get(cls.name, {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    built = []
    for step in yaml.safe_load(described(cls).example):
        assert (step["type"], set(step)) == (cls.name, {"name", "type", "params"} & set(step))
        function = {"function": FUNCTIONS[cls.name]} if cls.name in FUNCTIONS else {}
        built.append(build_operator(cls.name, {**step.get("params", {}), **function}, folder))
    return built


def fitting_table(operator: Operator) -> pa.Table:
    """Four rows with the columns that the operator reads, of the first types that it takes."""
    known = COLUMNS.get(operator.name, {})
    names = [name for name in dict.fromkeys(operator.reads()) if name not in known and name != "row_id"]
    for kinds in itertools.product(("string", "float64", "json"), repeat=len(names)):
        schema: Schema = {"row_id": "string", **known, **dict(zip(names, kinds, strict=True))}
        columns = {name: VALUES[kind] for name, kind in schema.items()} | {"row_id": ["r0", "r1", "r2", "r3"]}
        rows = table_of(columns, schema)
        try:
            operator.output_schema(schema_of(rows))
        except ConfigError:
            continue
        return rows
    raise AssertionError(f"the example of {operator.name} takes no types of {names}")


@EVERY
def test_the_docstring_has_the_fixed_form(cls: type[Operator]):
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()
    assert len(lines[0]) < 110 and lines[0].endswith(".")
    assert lines[1] == ""
    assert "Grain" in described(cls).description
    assert lines.count("Example:") == 1


@EVERY
def test_every_parameter_has_a_meaning(cls: type[Operator]):
    assert [each.name for each in described(cls).parameters if not each.meaning.endswith(".")] == []


@EVERY
def test_the_example_runs(cls: type[Operator], tmp_path: Path):
    built = steps_of(cls, tmp_path)
    assert built
    for operator in built:
        rows = fitting_table(operator)
        if isinstance(operator, DatasetOperator):
            summaries = [("b", rows if operator.regroups else operator.summarize(rows))]
            [(key, verdict)] = operator.decide(summaries)
            check_law(operator, rows, operator.apply_verdict(rows, verdict), key)
        elif isinstance(operator, ModelOperator):
            assert operator.output_schema(schema_of(rows))  # its model is on a hub: the tests have small ones
        elif isinstance(operator, RowOperator):
            check_law(operator, rows, operator.apply(rows), "b")


def test_kinds_are_folders_and_those_of_users_come_last():
    class Theirs(RowOperator):
        """Another package's."""

        name = "theirs"

    assert kind_of(Theirs) == "other"
    kinds = list(by_kind({**SHIPPED, "theirs": Theirs}))
    assert kinds[0] == "filters" and kinds[-1] == "other"


def test_an_operator_without_an_example_is_still_described():
    class Bare(RowOperator):
        name = "bare"

    found = described(Bare)
    assert (found.kind, found.example, found.reads, found.columns) == ("other", "", None, "")


def test_types_are_named_as_one_writes_them():
    marks = next(
        each for each in described(SHIPPED["filter_fineweb"]).parameters if each.name == "terminal_marks"
    )
    assert marks.type == "list of text | null"


def test_the_page_is_what_the_operators_say():
    command = "python -m dataflow_assets.operators_page > docs/operators.md"
    assert (TREE / "docs/operators.md").read_text("utf-8") == page(), f"out of date: run `{command}`"
