"""`operators`: all of them by kind, or one with all that it says of itself."""

import click

from dataflow_assets.cli.console import print_line, print_table
from dataflow_assets.cli.look_commands import as_json, print_json
from dataflow_assets.operators.catalog import Described, by_kind, described, summary_of
from dataflow_assets.operators.registry import find_operator, operators


@click.command("operators")
@click.argument("name", required=False)
@as_json
@click.option("--open-dataflow", is_flag=True, help="Those of the package open-dataflow, if it is installed.")
def list_operators(name: str | None, as_json: bool, open_dataflow: bool) -> None:
    """All operators by kind, or one of them with its parameters and an example."""
    if open_dataflow:
        _list_open_dataflow(as_json)
        return
    kinds = by_kind({name: find_operator(name)} if name else operators())
    found = [operator for members in kinds.values() for operator in members]
    if as_json:
        print_json([described(operator).as_json(operator) for operator in found])
    elif name:
        _print_operator(described(found[0]))
    else:
        width = max(len(operator.name) for operator in found)
        for kind, members in kinds.items():
            print_line(f"{kind}:")
            for each in members:
                print_line(f"  {each.name:{width}}  {each.scope:7}  {summary_of(each)}")


def _list_open_dataflow(as_json: bool) -> None:
    from dataflow_assets.operators.opendcai.known import known

    found = known()
    if as_json:
        print_json([each._asdict() for each in found])
        return
    rows = [(each.operator, each.type, ", ".join(each.lacks) or "nothing") for each in found]
    print_table(("operator", "type", "lacks here"), rows)


def _print_operator(operator: Described) -> None:
    print_line(f"{operator.name} ({operator.kind}, version {operator.version}, {operator.scope} scope)")
    for line in (operator.summary, "", *operator.description.splitlines(), "", operator.columns):
        print_line(line)
    if operator.parameters:
        print_line("")
        rows = [
            (each.name, each.type, each.default, each.range, each.meaning) for each in operator.parameters
        ]
        print_table(("parameter", "type", "default", "range", "meaning"), rows)
    print_line("")
    for line in ("example, a step of a pipeline:", *operator.example.splitlines()):
        print_line(line)
