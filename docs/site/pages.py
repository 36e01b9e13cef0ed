"""What makes a site of README, CHANGELOG and docs/, which are written to be read as files too.

The navigation names the pages in their order; a page that it does not name yet comes under `More`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from dataflow_assets.cli.main import group

TREE = Path(__file__).parents[2]
# Pages of the site that are no files of docs/, and where their text is.
BROUGHT = {
    "index.md": TREE / "README.md",
    "changelog.md": TREE / "CHANGELOG.md",
    "notice.md": TREE / "dataflow_assets/pipelines/data/NOTICE.md",
}
MODULES = ("pipeline.model", "run", "replicated", "batch", "operators.operator", "io.step_files", "errors")
COMMANDS, PYTHON = "reference/command.md", "reference/python.md"
NAVIGATION = {
    "Begin": ["index", "tutorial", "moving-from-dataflow", "comparison"],
    "Pipelines": [
        "pipelines",
        "sources",
        "corpora",
        "sql",
        "resume",
        "failed-rows",
        "checks",
        "expectations",
    ],
    "Steps": ["operators-how-to", "pii", "llm", "models", "replicas", "clickhouse"],
    "Pipelines that come with it": ["text_pretrain", "legal_zh", "pdf_to_chunks"],
    "Look": ["profiles", "report", "monitoring", "dagster", "dagster-ui"],
    "Results": ["export", "training", "versions"],
    "Cluster": ["cluster", "object-stores"],
    "Reference": [
        "operators",
        "reference/command",
        "reference/python",
        "limits",
        "decisions",
        "changelog",
        "notice",
    ],
}
_MORE = "More"
_OUT_OF_DOCS = re.compile(r"\]\(\.\./(README|CHANGELOG)\.md(#[^)]*)?\)")
_INTO_DOCS = re.compile(r"\]\(docs/([^)]+)\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^([*-]|\d+\.) ")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the pages that are there into the navigation."""
    there = {path.stem for path in Path(config.docs_dir).glob("*.md")}
    there |= {name.removesuffix(".md") for name in (*BROUGHT, COMMANDS, PYTHON)}
    named = {name for names in NAVIGATION.values() for name in names}
    sections = {**NAVIGATION, _MORE: sorted(there - named)}
    found = {title: [f"{name}.md" for name in names if name in there] for title, names in sections.items()}
    config.nav = [{title: pages} for title, pages in found.items() if pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are no files of docs/."""
    for name, path in BROUGHT.items():
        files.append(File.generated(config, name, content=_for_site(path.read_text("utf-8"))))
    modules = "".join(f"::: dataflow_assets.{name}\n\n" for name in MODULES)
    files.append(File.generated(config, COMMANDS, content="\n".join(_helps())))
    files.append(File.generated(config, PYTHON, content=f"# Python\n{modules}"))
    return files


def _helps() -> Iterator[str]:
    """What `--help` of each command prints."""
    yield "# The command"
    context = click.Context(group, info_name="dataflow-assets", max_content_width=90)
    yield from _help(group, context)


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"\n## {context.command_path}\n```text\n{command.get_help(context)}\n```"
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _help(inner, click.Context(inner, context, name, max_content_width=90))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page as Python-Markdown wants it, with links that lead to pages of the site."""
    linked = _OUT_OF_DOCS.sub(lambda found: f"]({_page_of(found[1])}{found[2] or ''})", markdown)
    return "\n".join(_with_gaps(linked.splitlines()))


def _page_of(name: str) -> str:
    return "index.md" if name == "README" else "changelog.md"


def _for_site(text: str) -> str:
    text = _INTO_DOCS.sub(r"](\1)", text).replace("](CHANGELOG.md)", "](changelog.md)")
    text = text.replace("](dataflow_assets/pipelines/data/NOTICE.md)", "](notice.md)")
    return re.sub(r"(?<!\]\()\bdocs/([a-z_-]+)\.md", r"[\1](\1.md)", text)


def _with_gaps(lines: list[str]) -> Iterator[str]:
    """The lines with an empty one before each list, without which Python-Markdown sees none."""
    in_code, before = False, ""
    for line in lines:
        in_code ^= bool(_FENCE.match(line))
        begins = _ITEM.match(line) and before.strip() and not _ITEM.match(before) and before[0] not in " #"
        if begins and not in_code:
            yield ""
        yield line
        before = line
