"""What operators with a prompt share: the messages of a row, the call, the check of its answer."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

from dataflow_assets.batch import Schema, json_text
from dataflow_assets.operators.llm.gates import GateParams, Gates
from dataflow_assets.operators.llm.operator import LLMOperator
from dataflow_assets.operators.llm.prompt_params import GatedParams, PromptParams, StructuredParams
from dataflow_assets.operators.llm.shipped import prompt_template, prompt_text
from dataflow_assets.operators.llm.template import Template, written_text_of
from dataflow_assets.operators.llm.thinking import without_thinking
from dataflow_assets.serving.calls import Answer, Call, Message
from dataflow_assets.serving.structured import parsed, schema_instruction, schema_prompt, validated
from dataflow_assets.text.language import LANGUAGES, Language, language_of

_CUE = "JSON:"


class PromptedOperator(LLMOperator):
    """An operator whose calls are made of a prompt.

    The prompt names columns, and fields that the operator fills: `aliases` stand for a column that
    a parameter names, `fills` are texts of its own. `prompt_name` and `pieces` are the shipped files
    that it uses, in English and Chinese.
    """

    Params = PromptParams
    prompt_name: ClassVar[str] = ""
    pieces: ClassVar[tuple[str, ...]] = ()
    fills: ClassVar[tuple[str, ...]] = ()

    @property
    def _prompt_params(self) -> PromptParams:
        return cast(PromptParams, self.params)

    def shipped_name(self) -> str:
        """The name of the shipped prompt; nothing where there is none."""
        return self.prompt_name

    def aliases(self) -> Mapping[str, str]:
        """The fields of the prompt that stand for a column, and which."""
        return {}

    def reads(self) -> list[str]:
        """The columns that prompt and system message name."""
        return list(self._columns)

    @cached_property
    def _columns(self) -> list[str]:
        aliases = self.aliases()
        names = [name for template in self._templates("en") for name in template.columns()]
        return list(dict.fromkeys(aliases.get(name, name) for name in names if name not in self.fills))

    def _templates(self, language: Language) -> list[Template]:
        system = self._prompt_params.system_template
        prompt = self.template(language)
        return [template for template in (prompt, system) if template is not None]

    def template(self, language: Language) -> Template | None:
        """The prompt of the parameters, else the shipped one."""
        if self._prompt_params.template is not None:
            return self._prompt_params.template
        return prompt_template(self.shipped_name(), language) if self.shipped_name() else None

    def inputs(self, row: Mapping[str, object]) -> list[str]:
        """The row's texts that the model is given."""
        values = (row.get(column) for column in self.reads())
        return [
            value if isinstance(value, str) else json_text(value) for value in values if value is not None
        ]

    def language(self, row: Mapping[str, object]) -> Language:
        """The language of the shipped prompt for this row."""
        chosen = self._prompt_params.language
        return language_of("\n".join(self.inputs(row))) if chosen == "auto" else chosen

    def prompt_of(self, row: Mapping[str, object], words: Mapping[str, str]) -> str:
        """The prompt, filled from the row and the operator's own words."""
        template = self.template(self.language(row))
        assert template is not None
        return self._filled(template, row, words)

    def _filled(self, template: Template, row: Mapping[str, object], words: Mapping[str, str]) -> str:
        aliases = self.aliases()
        used = {name: written_text_of(row, aliases[name]) for name in template.columns() if name in aliases}
        return template.filled({**row, **used, **words})

    def messages(
        self, row: Mapping[str, object], text: str | None, history: Sequence[Message] = ()
    ) -> tuple[Message, ...]:
        """The conversation that is sent: system messages, examples, history, and `text` as the last turn.

        A system message of the parameters replaces that of the history.
        """
        spoken = [message for message in history if message["role"] != "system"]
        asked: list[Message] = [] if text is None else [{"role": "user", "content": text}]
        return (*self._system(row, history), *self._examples, *spoken, *asked)

    def _system(self, row: Mapping[str, object], history: Sequence[Message]) -> list[Message]:
        template = self._prompt_params.system_template
        if template is not None:
            return [{"role": "system", "content": self._filled(template, row, {})}]
        return [message for message in history if message["role"] == "system"]

    @cached_property
    def _examples(self) -> list[Message]:
        shown: list[Message] = []
        for example in self._prompt_params.examples:
            shown.append({"role": "user", "content": example.user})
            shown.append({"role": "assistant", "content": example.assistant})
        return shown

    def call(
        self, messages: tuple[Message, ...], schema: Mapping[str, object] | None = None, sample: int = 0
    ) -> Call:
        """A call with the parameters that were given; each sample has a seed of its own."""
        params = self._prompt_params
        seed = None if params.seed is None else params.seed + sample
        given = {"temperature": params.temperature, "max_tokens": params.max_tokens, "seed": seed}
        parameters = {name: value for name, value in given.items() if value is not None}
        return Call(messages, parameters, schema=schema, sample=sample)

    def fingerprint_of_params(self) -> Mapping[str, object]:
        """The parameters, with the texts of the prompts in the place of their file or default."""
        found = {
            name: value for name, value in super().fingerprint_of_params().items() if name != "prompt_file"
        }
        own = self._prompt_params.template
        chosen = self._prompt_params.language
        languages = LANGUAGES if chosen == "auto" else (chosen,)
        default = [self.shipped_name()] if self.shipped_name() and own is None else []
        names = [*default, *self.pieces]
        shipped = {f"{name}.{each}": prompt_text(name, each) for name in names for each in languages}
        return {**found, "prompt": own.text if own else None, "shipped": shipped}

    def answer_text(self, answer: Answer) -> str:
        """The text of an answer without white space around, and without thinking unless it is kept.

        Raises CallFailed `empty` where nothing came after the thinking.
        """
        text = answer.text.strip()
        if self._prompt_params.keep_thinking:
            return text
        return without_thinking(text)

    def _fixed_texts(self) -> list[str]:
        templates = [template for language in LANGUAGES for template in self._templates(language)]
        return [literal for template in templates for literal in template.literals()]


class GatedOperator(PromptedOperator):
    """An operator that makes text and lets it through its gates."""

    Params = GatedParams

    @cached_property
    def gates(self) -> Gates:
        """The gates of the parameters."""
        return Gates(cast(GatedParams, self.params).gates, self._fixed_texts())

    @cached_property
    def plain_gates(self) -> Gates:
        """The gates that are on without being asked for, for texts beside the answer."""
        return Gates(GateParams(), self._fixed_texts())

    def identity(self) -> Mapping[str, object]:
        """What the gates ask beside their parameters."""
        return {**super().identity(), "gates": self.gates.identity()}

    def text_check(self, row: Mapping[str, object]) -> Callable[[Answer], str]:
        """The check of an answer that is text: the text, if it passes the gates."""

        def check(answer: Answer) -> str:
            text = self.answer_text(answer)
            self.gates.check(text, self.inputs(row), row)
            return text

        return check


class Structured(NamedTuple):
    """A value that fits its schema, and whether its JSON had to be mended."""

    value: Any
    repaired: bool


class StructuredOperator(PromptedOperator):
    """An operator whose answers are JSON of a schema, an object."""

    Params = StructuredParams

    @property
    def _repairs(self) -> bool:
        return cast(StructuredParams, self.params).repair

    def marks(self) -> Schema:
        """The column that says whether the JSON was mended, where that is allowed."""
        return {"repaired": "bool"} if self._repairs else {}

    def marked(self, values: Mapping[str, object], repaired: bool) -> dict[str, object]:
        """The values, with that mark."""
        return {**values, "repaired": repaired} if self._repairs else dict(values)

    def structured_call(
        self,
        row: Mapping[str, object],
        schema: Mapping[str, object],
        words: Mapping[str, str],
        history: Sequence[Message] = (),
    ) -> Call:
        """A call whose prompt begins with the schema, which also stands in the call, and ends with a cue."""
        said = schema_prompt(schema, self.language(row))
        if self.template("en") is not None:
            said = f"{said}\n{self.prompt_of(row, words)}\n\n{_CUE}"
        return self.call(self.messages(row, said, history), schema)

    def value_check(self, schema: Mapping[str, object]) -> Callable[[Answer], Structured]:
        """The check of an answer that is JSON of this schema."""

        def check(answer: Answer) -> Structured:
            value, repaired = parsed(answer.text, self._repairs)
            return Structured(validated(value, schema, answer.text), repaired)

        return check

    def fingerprint_of_params(self) -> Mapping[str, object]:
        """The parameters, the prompts, and the sentence before a schema."""
        sentences = {language: schema_instruction(language) for language in LANGUAGES}
        return {**super().fingerprint_of_params(), "schema_instruction": sentences}
