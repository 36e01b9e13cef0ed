"""Makes up an answer of the call itself: sentences of its last user message, or JSON of its schema."""

import json
import re
from collections.abc import Iterable

from dataflow_assets.serving.calls import Call
from dataflow_assets.serving.scripted_json import value_for
from dataflow_assets.text.sentences import sentence_spans

_SENTENCES = 3
_IN_SHORT = ("In short: ", "简而言之：")
_ODD_ONE = 3
_BLANK_LINES = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"\s*(?:<\w+>|#+ .{1,40}|.{1,40}[:：])\s*")
_FULL_WIDTH = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")


def answer_for(call: Call, choice: int = 0) -> str:
    """A plausible answer; equal calls give equal answers. `choice` tells the answers of one call apart.

    Without a schema: up to three sentences of what seems to be the text in the last user message.
    With one: JSON that fits it, filled with such sentences. Two of three samples are the same.
    An answer that would be a copy of the text begins with `In short:`.
    """
    message = last_user(call)
    subject = subject_of(message)
    found = sentences(subject) or [message.strip() or "…"]
    if (call.sample + choice) % _ODD_ONE == _ODD_ONE - 1:
        found = found[1:] + found[:1]
    if call.schema is not None:
        return json.dumps(value_for(call.schema, found), ensure_ascii=False)
    answer = _joined(found[:_SENTENCES])
    return answer if answer != subject else f"{_IN_SHORT[bool(_FULL_WIDTH.search(answer))]}{answer}"


def last_user(call: Call) -> str:
    """The last message of the user; empty if there is none."""
    said = [message["content"] for message in call.messages if message["role"] == "user"]
    return said[-1] if said else ""


def subject_of(message: str) -> str:
    """What the message is about: all after a line such as `Text:` that begins a paragraph.

    Without such a line it is the longest paragraph after the first, which mostly says what to do.
    """
    paragraphs = [paragraph.strip() for paragraph in _BLANK_LINES.split(message.strip())]
    if len(paragraphs) > 1 and _HEADING.fullmatch(paragraphs[-1]):
        del paragraphs[-1]
    for place, paragraph in enumerate(paragraphs[1:], 1):
        heading, *lines = paragraph.split("\n")
        found = "\n\n".join(filter(None, ["\n".join(lines), *paragraphs[place + 1 :]]))
        if found and _HEADING.fullmatch(heading):
            return found
    return max(paragraphs[1:] or paragraphs, key=len)


def sentences(text: str) -> list[str]:
    """The sentences of an English or Chinese text; those without a letter or digit are left out."""
    found = (text[start:end].strip() for start, end in sentence_spans(text))
    return [sentence for sentence in found if any(map(str.isalnum, sentence))]


def _joined(parts: Iterable[str]) -> str:
    """One text, with a space between the sentences except after Chinese punctuation."""
    text = ""
    for part in parts:
        text += part if not text or _FULL_WIDTH.match(text[-1]) else f" {part}"
    return text
