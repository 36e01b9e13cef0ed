"""The prompts and word lists that come with the package, one file for each language."""

from functools import cache
from importlib.resources import files

from dataflow_assets.operators.llm.template import Template
from dataflow_assets.text.language import Language

_PACKAGE = "dataflow_assets.operators.llm"


@cache
def prompt_text(name: str, language: Language) -> str:
    """The text of `prompts/<language>/<name>.txt`, without the line break at its end."""
    return (files(_PACKAGE) / "prompts" / language / f"{name}.txt").read_text("utf-8").rstrip("\n")


@cache
def prompt_template(name: str, language: Language) -> Template:
    """The same, as a template."""
    return Template(prompt_text(name, language))


@cache
def refusal_phrases(language: Language) -> tuple[str, ...]:
    """The phrases of `refusals/<language>.txt`; `^` before those that count only at the beginning."""
    lines = (files(_PACKAGE) / "refusals" / f"{language}.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))
