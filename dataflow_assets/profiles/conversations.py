"""What is measured of a conversation: a JSON list of turns, as `messages` and ShareGPT columns have them."""

from collections.abc import Mapping, Sequence

import numpy as np

from dataflow_assets.profiles.texts import Tokenize, text_measures

CONVERSATION_MEASURES = {
    "turns": "turns of a conversation",
    "turn_chars": "characters of a turn, in the mean of the conversation",
    "turn_tokens": "tokens of a turn, in the mean of the conversation",
    "unfinished": "1 where the last turn ends without a mark that ends a sentence",
}
CONVERSATION_LABELS = {"last_role": "role of the last turn"}
_ROLES, _TEXTS = ("role", "from"), ("content", "value")


def turns_of(value: object) -> list[tuple[str, str]] | None:
    """Role and text of each turn, or None for what is no conversation."""
    if not isinstance(value, list) or not value or not all(isinstance(turn, Mapping) for turn in value):
        return None
    turns = [(_first(turn, _ROLES), _first(turn, _TEXTS)) for turn in value]
    return turns if all(role for role, _ in turns) else None


def _first(turn: Mapping[str, object], names: Sequence[str]) -> str:
    found = next((turn[name] for name in names if name in turn), "")
    return found if isinstance(found, str) else "" if found is None else str(found)


def conversation_measures(
    conversations: Sequence[list[tuple[str, str]]], tokenize: Tokenize | None = None
) -> dict[str, np.ndarray]:
    """The measures by name, one value for each conversation."""
    lengths = np.array([len(turns) for turns in conversations], np.float64)
    texts = [text for turns in conversations for _, text in turns]
    each = text_measures([_encodable(text) for text in texts], tokenize)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(int) if len(lengths) else np.empty(0, int)
    last = (starts + lengths - 1).astype(int)

    def mean(name: str) -> np.ndarray:
        return np.add.reduceat(each[name], starts) / lengths if len(lengths) else np.empty(0)

    return {
        "turns": lengths,
        "turn_chars": mean("chars"),
        "turn_tokens": mean("tokens"),
        "unfinished": each["unfinished"][last] if len(lengths) else np.empty(0),
    }


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
