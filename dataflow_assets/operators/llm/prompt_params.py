"""The parameters of operators with a prompt: where its text comes from, and what answers must be."""

from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from dataflow_assets.operators.llm.gates import GateParams
from dataflow_assets.operators.llm.operator import ServingParams
from dataflow_assets.operators.llm.template import Template
from dataflow_assets.operators.operator import Params

_BASE_DIR = "base_dir"


class Example(Params):
    """One exchange that shows the model what is wanted; sent as it is, before the row's own message."""

    user: str = Field(min_length=1, description="What a user might say.")
    assistant: str = Field(min_length=1, description="What the model should answer to it.")


class PromptParams(ServingParams):
    """Parameters of an operator with a prompt."""

    prompt: str | None = Field(
        None,
        description="The prompt: `{name}` is a column, `{{` and `}}` are braces. Default: the shipped one.",
    )
    prompt_file: str | None = Field(
        None, description="A UTF-8 file with the prompt; relative paths begin at the pipeline's folder."
    )
    system: str | None = Field(None, description="System message, written like `prompt`.")
    examples: list[Example] = Field([], description="Exchanges that show what is wanted.")
    language: Literal["auto", "en", "zh"] = Field(
        "auto", description="Of the shipped prompt; `auto`: zh for rows with 20% Han characters or more."
    )
    keep_thinking: bool = Field(False, description="Leave `<think>…</think>` in the answers.")
    _template: Template | None = PrivateAttr(None)
    _system_template: Template | None = PrivateAttr(None)

    @property
    def template(self) -> Template | None:
        """The prompt that was given, from text or file."""
        return self._template

    @property
    def system_template(self) -> Template | None:
        """The system message that was given."""
        return self._system_template

    @model_validator(mode="after")
    def _prompts_can_be_read(self, info: ValidationInfo) -> "PromptParams":
        if self.prompt is not None and self.prompt_file is not None:
            raise ValueError("give prompt or prompt_file, not both")
        text = self.prompt
        if self.prompt_file is not None:
            text = _read(self.prompt_file, (info.context or {}).get(_BASE_DIR))
        self._template = _compiled("prompt_file" if self.prompt_file else "prompt", text)
        self._system_template = _compiled("system", self.system)
        return self


def _read(path: str, base: object) -> str:
    whole = Path(str(base or ".")) / path
    try:
        return whole.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"prompt_file {path!r} cannot be read as UTF-8 text at {whole}: {error}") from error


def _compiled(field: str, text: str | None) -> Template | None:
    if text is None:
        return None
    if not text.strip():
        raise ValueError(f"{field} is blank; expected text")
    try:
        return Template(text.rstrip("\n"))
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error


class GatedParams(PromptParams):
    """Parameters of an operator that makes text."""

    gates: GateParams = Field(GateParams(), description="What an answer must be, else its row fails.")


class StructuredParams(PromptParams):
    """Parameters of an operator whose answers are JSON."""

    repair: bool = Field(
        False, description="Mend JSON with mistakes; the column `repaired` then says where that was done."
    )
