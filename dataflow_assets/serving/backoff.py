"""How long to wait before a call is sent again."""

import random

_MAX_DOUBLINGS = 60
_RETRY_AFTER_JITTER = 0.25


def wait_s(
    attempt: int, base_s: float, max_s: float, retry_after_s: float | None, rng: random.Random
) -> float:
    """Seconds before the next call; `attempt` is 0 after the first call.

    Full jitter: random, above 0 and up to `base_s` doubled `attempt` times. Where the server asked to
    wait, at least that long and up to a quarter longer, so that the rows do not come back together.
    Never more than `max_s`, whatever the server asked for. Source: Brooker, "Exponential backoff and
    jitter" (AWS Architecture Blog, 2015).
    """
    ceiling = min(max_s, base_s * 2.0 ** min(attempt, _MAX_DOUBLINGS))
    jitter = ceiling * (1.0 - rng.random())
    if retry_after_s is None:
        return jitter
    asked = max(0.0, retry_after_s) * (1.0 + _RETRY_AFTER_JITTER * rng.random())
    return min(max_s, max(jitter, asked))
