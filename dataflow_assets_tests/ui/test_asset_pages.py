"""What the UI shows of an asset before any run, and what a batch's event says of its columns."""

import dagster as dg
import pytest

from dataflow_assets.definitions import definitions_of
from dataflow_assets.errors import ConfigError
from dataflow_assets.io.asset_columns import LINEAGE_METADATA, SCHEMA_METADATA
from dataflow_assets.pipeline.columns import column_origins
from dataflow_assets.pipeline.file import load_pipeline
from dataflow_assets_tests.dagster_side.small_pipelines import SmallProject, write_pipeline, write_rows

pytestmark = pytest.mark.filterwarnings("ignore::dagster.BetaWarning")
STEPS = """\
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: renamed, type: rename_columns, params: {columns: {text: body}}}
  - {name: long-enough, type: filter_length, params: {column: body, min_chars: 2}}
"""


def nodes(folder, steps=STEPS, head="", texts=("One", "two")):
    file = write_pipeline(folder, steps=steps, head=f"root: {folder / 'root'}\n{head}")
    if texts:
        write_rows(folder, "a", texts)
    graph = definitions_of([load_pipeline(file)]).resolve_asset_graph()
    return {node.key.path[-1]: node for node in graph.asset_nodes}


def columns_of(metadata):
    return {column.name: column for column in metadata[SCHEMA_METADATA].schema.columns}


def test_the_description_says_what_the_step_does_and_with_which_parameters(tmp_path):
    text = nodes(tmp_path)["long-enough"].description
    assert text.startswith("Step 3, `filter_length`: Keeps the rows")
    assert "Grain: one row in" in text
    assert "| `min_chars` | 2 | The fewest Unicode code points. |" in text


def test_the_source_shows_the_whole_pipeline(tmp_path):
    assert "| 2 | `renamed` | `rename_columns` |" in nodes(tmp_path)["source"].description


def test_columns_are_known_before_any_run(tmp_path):
    columns = columns_of(nodes(tmp_path)["long-enough"].metadata)
    assert {name: column.type for name, column in columns.items()} == {"row_id": "string", "body": "string"}
    assert columns["body"].description == "Added by step 2, `renamed` (`rename_columns`), from `text`."


def test_a_column_has_the_meaning_that_the_operator_gives_it(tmp_path):
    columns = columns_of(nodes(tmp_path)["lower"].metadata)
    assert columns["text"].description == "The text column. Changed by step 1, `lower` (`lowercase`)."


def test_without_a_source_the_page_has_no_columns_and_all_else(tmp_path):
    node = nodes(tmp_path, texts=())["lower"]
    assert SCHEMA_METADATA not in node.metadata
    assert node.description.startswith("Step 1")


def test_columns_are_made_of_those_that_the_operator_reads(tmp_path):
    lineage = nodes(tmp_path)["renamed"].metadata[LINEAGE_METADATA].column_lineage.deps_by_column
    assert lineage["body"] == [dg.TableColumnDep(dg.AssetKey(["small", "lower"]), "text")]


def test_columns_of_a_join_come_from_the_parent_that_changed_them(tmp_path):
    steps = """\
  - {name: lower, type: lowercase, params: {column: text}}
  - {name: raw, type: rename_columns, params: {columns: {text: raw}}, depends_on: [source]}
  - {name: both, type: filter_length, params: {column: text, min_chars: 1}, depends_on: [lower, raw]}
"""
    pipeline = load_pipeline(write_pipeline(tmp_path, steps=steps))
    made_of = column_origins(pipeline, {"row_id": "string", "text": "string"})["both"].made_of
    assert made_of["text"] == [("lower", "text")]
    assert made_of["raw"] == [("raw", "raw")]


def test_a_function_that_may_change_any_column_is_not_said_to_have_changed_it(tmp_path):
    function = "dataflow_assets_tests.ui.row_functions:count"
    steps = f"  - {{name: mine, type: map_python, params: {{function: {function!r}}}}}\n"
    columns = columns_of(nodes(tmp_path, steps)["mine"].metadata)
    assert columns["text"].description == "May be changed by step 1, `mine` (`map_python`)."


def test_owners_kinds_tags_and_the_place_in_the_file(tmp_path):
    node = nodes(tmp_path, head="owners: [team:data, ada@example.org]\n")["long-enough"]
    assert node.owners == ["team:data", "ada@example.org"]
    assert node.kinds == {"jsonl", "filters"}
    assert node.tags["dataflow/scope"] == "row"
    [place] = node.metadata["dagster/code_references"].code_references
    assert (place.file_path, place.line_number) == (str(tmp_path / "small.yaml"), 10)


OWN = '''
from dataflow_assets.operators.operator import TextFilter

class Short(TextFilter):
    """Keeps all; reads `column` (string)."""
    name = "过短 text!"

    def reason(self, text):
        return None
'''


def test_an_operator_may_have_a_name_that_no_tag_can_have(tmp_path):
    (tmp_path / "named_operators.py").write_text(OWN)
    steps = "  - {name: short, type: 'named_operators:Short', params: {column: text}}\n"
    assert nodes(tmp_path, steps)["short"].tags["dataflow/operator"] == "___text_"


@pytest.mark.parametrize("owner", ["data", "team:", "a b@c.d", "ada@", ""])
def test_an_owner_is_an_address_or_a_team(tmp_path, owner):
    file = write_pipeline(tmp_path, head=f"owners: [{owner!r}]\n")
    with pytest.raises(ConfigError, match="e-mail address or `team:NAME`"):
        load_pipeline(file)


def test_secrets_are_not_in_the_page(tmp_path, monkeypatch):
    monkeypatch.setenv("WORD", "hush-hush")
    steps = "  - {name: a, type: regex_replace, params: {pattern: '${WORD}', replacement: x}}\n"
    node = nodes(tmp_path, steps)["a"]
    assert r"\$\{WORD\}" in node.description and "hush" not in node.description
    assert node.metadata["params"]["pattern"] == "${WORD}"


@pytest.fixture
def project(tmp_path):
    project = SmallProject(tmp_path)
    project.write_rows("a", ["One  ONE", "two", "Two", "x", "y", "three"])
    return project


def test_a_batch_shows_values_before_and_after(project):
    project.run()
    shown = project.metadata("lower", "a_b00000")["before_and_after"]
    assert "| a:1 | text | One␣␣ONE | one␣␣one |" in shown


def test_a_batch_shows_why_rows_were_dropped(project):
    project.run()
    shown = project.metadata("long-enough", "a_b00001")["drop_reasons"]
    assert r"| too\_short | 1 | 50.0% |" in shown
    assert r"| too\_short | a:4 | x |" in shown


def test_a_batch_that_is_found_done_keeps_what_was_shown(project):
    project.run()
    before = project.metadata("lower", "a_b00000")
    project.run_in_ui("lower", keys=("a_b00000", "a_b00002"))
    assert project.event_count("lower") == 6
    assert project.metadata("lower", "a_b00000") == before


def test_a_batch_that_is_made_ahead_of_its_step_shows_the_same(project):
    project.set_steps(STEPS)
    project.run_in_ui("source")
    project.run_in_ui("lower", "renamed", "long-enough", keys=("a_b00000", "a_b00002"))
    assert "| a:4 | body | — | x |" in project.metadata("renamed", "a_b00001")["before_and_after"]
    assert "drop_reasons" in project.metadata("long-enough", "a_b00001")


def test_the_event_has_meanings_and_origins_of_the_columns(project):
    project.run()
    metadata = project.newest("last", "a_b00000").metadata
    assert "Changed by step 4, `last`" in columns_of(metadata)["text"].description
    deps = metadata[LINEAGE_METADATA].column_lineage.deps_by_column
    assert deps["text"] == [dg.TableColumnDep(dg.AssetKey(["small", "unique"]), "text")]


def test_the_source_shows_its_first_rows(project):
    project.run_in_ui("source")
    assert "| a:2 | two |" in project.metadata("source")["preview"]


def test_the_source_shows_lines_that_were_set_aside(project):
    (project.folder / "data" / "b.jsonl").write_text('{"text": "good"}\nno json\n')
    project.run()
    assert "no json" in project.metadata("source")["drop_reasons"]
