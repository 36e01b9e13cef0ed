"""Conversations of several turns: the model answers a user who is simulated, or whose turns are given."""

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import Field, model_validator

from dataflow_assets.batch import Schema
from dataflow_assets.errors import MissingValue
from dataflow_assets.operators.llm.conversation_input import ConversationParams, messages_of
from dataflow_assets.operators.llm.operator import Ask, Done
from dataflow_assets.operators.llm.prompt_params import GatedParams
from dataflow_assets.operators.llm.prompted import GatedOperator
from dataflow_assets.operators.llm.shipped import prompt_template
from dataflow_assets.operators.llm.template import written_text_of
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Answer, Message

_OPENING = "conversation.opening"


class _ConversationParams(GatedParams, ConversationParams):
    messages_column: str | None = Field(
        None, min_length=1, description="JSON column with the user's turns; nobody is simulated then."
    )
    column: str = Field("text", min_length=1, description="What it is about; `{text}` in the user's prompt.")
    opening: Literal["text", "simulated"] = Field(
        "text", description="Whether the text itself is the first turn, or the simulated user says it."
    )
    turns: int = Field(3, ge=1, le=100, description="How often the user speaks and is answered.")
    output_column: str = Field("messages", min_length=1, description="The column for the conversation.")

    @model_validator(mode="after")
    def _has_one_user(self) -> "_ConversationParams":
        if self.messages_column is not None and self.template is not None:
            raise ValueError("`prompt` is for a simulated user; with messages_column there is none")
        return self


@register
class Conversation(GatedOperator):
    """Makes a conversation of several turns and keeps it as a JSON list of messages.

    Grain: one row in, one row out; order and ids unchanged. Reads `column`, or `messages_column`, of
    which the user's turns are asked again one after the other and answers that stand there are left
    out. Writes `output_column` (JSON list of `{role, content}`; a system message is part of it).
    `prompt` is the simulated user's, with `{text}` and `{conversation}`; `system`, `examples` and
    `gates` are the assistant's. Fails a row without text or user turn as MissingValue, any turn that misses
    a gate as `gate:<name>`; turns that were paid for stay in the ledger.

    Example:
        - {name: talked, type: conversation, params: {column: instruction, turns: 3}}
    """

    name = "conversation"
    prompt_name = "conversation"
    pieces = (_OPENING,)
    fills = ("conversation",)
    Params = _ConversationParams
    params: _ConversationParams

    def shipped_name(self) -> str:
        """The simulated user's prompt, where there is one."""
        return "" if self.params.messages_column else self.prompt_name

    def aliases(self) -> Mapping[str, str]:
        """`text` stands for the text column."""
        return {"text": self.params.column}

    def reads(self) -> list[str]:
        """The user's turns, or what they are about."""
        own = self.params.messages_column or self.params.column
        return list(dict.fromkeys([own, *super().reads()]))

    def writes(self) -> Schema:
        """The conversation."""
        return {self.params.output_column: "json"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The conversation, turn by turn."""
        given = self._given(row)
        talk = self._system(row, given)
        turns = [message["content"] for message in given if message["role"] == "user"]
        for turn in range(len(turns) if self.params.messages_column else self.params.turns):
            said = turns[turn] if turn < len(turns) else await self._simulated(row, talk, ask)
            answer = await ask(self.call(self.messages(row, said, talk)), self.text_check(row))
            talk.append({"role": "user", "content": said})
            talk.append({"role": "assistant", "content": answer})
        return {self.params.output_column: talk}

    def _given(self, row: Mapping[str, object]) -> Sequence[Message]:
        """The messages of the row, or its text as the first turn, or nothing."""
        column = self.params.messages_column
        if column is None:
            text = written_text_of(row, self.params.column)
            return [{"role": "user", "content": text}] if self.params.opening == "text" else []
        given = messages_of(row, column)
        if all(message["role"] != "user" for message in given):
            raise MissingValue(f"missing {column}: no message in column {column!r} is of role `user`")
        return given

    async def _simulated(self, row: Mapping[str, object], talk: Sequence[Message], ask: Ask) -> str:
        """What the simulated user says next."""
        spoken = [message for message in talk if message["role"] != "system"]
        words = {"conversation": "\n\n".join(f"[{each['role']}]\n{each['content']}" for each in spoken)}
        if spoken or self.params.template is not None:
            text = self.prompt_of(row, words)
        else:
            text = self._filled(prompt_template(_OPENING, self.language(row)), row, words)
        return await ask(self.call(({"role": "user", "content": text},)), self._user_check)

    def _user_check(self, answer: Answer) -> str:
        text = self.answer_text(answer)
        self.plain_gates.check(text)
        return text
