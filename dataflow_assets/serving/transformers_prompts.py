"""Turns the messages of a call into the tokens that a local model reads."""

import re
from collections.abc import Sequence
from typing import Any

from dataflow_assets.serving.calls import Call, Message

_PLACEHOLDER = "\ue000{}\ue001"
_PLACEHOLDERS = re.compile("\ue000([0-9]+)\ue001")


class Prompts:
    """Applies the chat template of a tokenizer; a model without one gets the messages as lines.

    What stands in a message never becomes a marker of the template: `<|im_end|>` in a row's text is
    read as these ten characters.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._markers = [str(token) for token in tokenizer.added_tokens_encoder]

    def tokens(self, call: Call) -> list[int]:
        """The tokens of a chat or completion call, ready for the answer to follow."""
        if call.kind == "completion" or not self._tokenizer.chat_template:
            return self.plain(call)
        if self._has_marker(call.messages):
            return self._guarded(call.messages)
        return self._read(self._templated(call.messages), special=False)

    def plain(self, call: Call) -> list[int]:
        """The tokens of the messages alone."""
        text = "\n".join(message["content"] for message in call.messages)
        return self._read(text, special=True, split=self._has_marker(call.messages))

    def _has_marker(self, messages: Sequence[Message]) -> bool:
        return any(marker in message["content"] for message in messages for marker in self._markers)

    def _templated(self, messages: Sequence[Message]) -> str:
        return self._tokenizer.apply_chat_template(
            [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
        )

    def _guarded(self, messages: Sequence[Message]) -> list[int]:
        """The template is filled with placeholders first; then each content is read without markers."""
        empty = [
            Message(role=message["role"], content=_PLACEHOLDER.format(place))
            for place, message in enumerate(messages)
        ]
        tokens: list[int] = []
        for place, part in enumerate(_PLACEHOLDERS.split(self._templated(empty))):
            is_content = place % 2 == 1
            text = messages[int(part)]["content"] if is_content else part
            tokens += self._read(text, special=False, split=is_content)
        return tokens

    def _read(self, text: str, special: bool, split: bool = False) -> list[int]:
        """The tokens of a text: `special` adds those at its ends, `split` reads markers as characters."""
        if not text:
            return []
        found = self._tokenizer(text, add_special_tokens=special, split_special_tokens=split, verbose=False)
        return found["input_ids"]
