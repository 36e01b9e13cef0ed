"""Tells usable answers from those that ended in a bad way; looks at the finish reason before the text."""

from dataflow_assets.serving.calls import Answer, CallFailed, ErrorClass

_BAD_ENDS: dict[str, tuple[ErrorClass, str]] = {
    "length": ("truncated", "the answer was cut off at its longest length; raise `max_tokens`"),
    "content_filter": ("content_filter", "the server held the answer back by its content filter"),
}


def usable(answer: Answer) -> Answer:
    """The answer itself. Raises CallFailed `truncated`, `content_filter` or `empty` with what was billed."""
    for place, reason in enumerate(answer.finish_reasons):
        if reason in _BAD_ENDS:
            error_class, message = _BAD_ENDS[reason]
            raise _failed(answer, place, error_class, message)
    for place, text in enumerate(answer.texts):
        if not text.strip():
            raise _failed(answer, place, "empty", "the answer is empty")
    return answer


def _failed(answer: Answer, place: int, error_class: ErrorClass, message: str) -> CallFailed:
    """The failure, with the text of this choice."""
    raw = answer.texts[place] if place < len(answer.texts) else ""
    return CallFailed(error_class, message, raw=raw, tokens_in=answer.tokens_in, tokens_out=answer.tokens_out)
