"""Rows that hold a conversation: a JSON column of messages."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from dataflow_assets.errors import MissingValue, WrongType
from dataflow_assets.operators.llm.prompt_params import PromptParams
from dataflow_assets.operators.llm.prompted import PromptedOperator
from dataflow_assets.operators.llm.template import text_of
from dataflow_assets.serving.calls import Message

_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant"}
_KNOWN = ("system", "user", "assistant")


class ConversationParams(PromptParams):
    """Parameters of an operator that may get a conversation."""

    messages_column: str | None = Field(
        None,
        description="JSON column with the messages so far, `{role, content}` or `{from, value}` each; sent "
        "before the prompt, or alone if there is no prompt.",
    )


def messages_of(row: Mapping[str, object], column: str) -> tuple[Message, ...]:
    """The messages of a row's JSON column, with the roles of the API.

    Raises MissingValue where there are none, WrongType for what is no message.
    """
    found = row.get(column)
    if found is None or found == []:
        raise MissingValue(f"missing {column}: the row has no messages in column {column!r}")
    if not isinstance(found, Sequence) or isinstance(found, str):
        raise WrongType(
            f"wrong type: column {column!r} holds {type(found).__name__}, expected a JSON list of messages"
        )
    return tuple(_message(message, number, column) for number, message in enumerate(found, 1))


def _message(given: object, number: int, column: str) -> Message:
    if isinstance(given, str):
        given = {"role": "user", "content": given}
    fields = given if isinstance(given, Mapping) else {}
    role = fields.get("role", fields.get("from"))
    role = _ROLES.get(str(role), role)
    content = fields.get("content", fields.get("value"))
    if role not in _KNOWN or not isinstance(content, str):
        raise WrongType(
            f"wrong type: message {number} in column {column!r} is {given!r:.100}, expected "
            f"{{role, content}} with one of the roles {', '.join(_KNOWN)} and a text"
        )
    return {"role": role, "content": text_of({column: content}, column)}


class ConversationOperator(PromptedOperator):
    """An operator that may get a conversation before its prompt, or in its place."""

    Params = ConversationParams

    @property
    def _messages_column(self) -> str | None:
        assert isinstance(self.params, ConversationParams)
        return self.params.messages_column

    def reads(self) -> list[str]:
        """The columns of the prompt, and that of the messages."""
        own = [self._messages_column] if self._messages_column else []
        return list(dict.fromkeys([*super().reads(), *own]))

    def inputs(self, row: Mapping[str, object]) -> list[str]:
        """The texts of the prompt's columns and of each message."""
        if self._messages_column is None:
            return super().inputs(row)
        others = super().inputs({**row, self._messages_column: None})
        return [*others, *(message["content"] for message in self.history(row))]

    def history(self, row: Mapping[str, object]) -> tuple[Message, ...]:
        """The messages so far. Raises WrongType where nobody is to answer the last one."""
        if self._messages_column is None:
            return ()
        history = messages_of(row, self._messages_column)
        if self.template("en") is None and history[-1]["role"] != "user":
            raise WrongType(
                f"wrong type: the last message in column {self._messages_column!r} is of role "
                f"{history[-1]['role']!r}, expected `user`; give a `prompt`, or drop that message"
            )
        return history
