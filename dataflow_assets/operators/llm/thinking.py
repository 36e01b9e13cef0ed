"""The thinking that some models put before their answer."""

from dataflow_assets.serving.calls import CallFailed

_THINK, _THINK_END = "<think>", "</think>"


def without_thinking(text: str) -> str:
    """The text after `<think>…</think>` at its beginning; also where the server left out the first tag.

    Raises CallFailed `empty` where the thinking never ends or nothing follows it.
    """
    before, closed, rest = text.partition(_THINK_END)
    starts = text.startswith(_THINK)
    if not starts and (not closed or _THINK in before):
        return text
    answer = rest.strip()
    if not answer:
        problem = "nothing follows the thinking" if closed else "the thinking never ends (no `</think>`)"
        raise CallFailed(
            "empty", f"no answer: {problem}; raise `max_tokens` or set `keep_thinking`", raw=text
        )
    return without_thinking(answer) if answer.startswith(_THINK) else answer
