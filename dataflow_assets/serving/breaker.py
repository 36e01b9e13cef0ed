"""Pauses the run when every call would fail in the same way, so that the queue of failed rows stays empty."""

from dataflow_assets.errors import Paused
from dataflow_assets.serving.calls import CallFailed

_ADVICE = {
    "auth": "wrong key? Give the serving the right `api_key`",
    "not_found": "no such model or address? Check `model` and `base_url` of the serving",
    "quota": "the account is used up: raise its limit or switch the serving",
    "connection": "is the server up? Check `base_url` of the serving",
}
_UNREACHABLE = "connection"


class Breaker:
    """Opens after `threshold` hard failures (see `HARD`) in a row; an answer closes it.

    A call that found no server in all its attempts counts as one too: the next row would find none
    either. Other failures neither open nor close it.
    """

    def __init__(self, threshold: int) -> None:
        self._threshold = threshold
        self._in_a_row = 0
        self._last: CallFailed | None = None

    def failed(self, error: CallFailed) -> None:
        """Counts a call that failed for good."""
        if error.hard or error.error_class == _UNREACHABLE:
            self._in_a_row += 1
            self._last = error

    def succeeded(self) -> None:
        """Starts the count anew."""
        self._in_a_row = 0

    @property
    def open(self) -> bool:
        """Whether no further call should be sent."""
        return self._in_a_row >= self._threshold

    def check(self) -> None:
        """Raises Paused while the breaker is open; call it before each call is sent."""
        if not self.open or self._last is None:
            return
        name = self._last.error_class
        raise Paused(
            f"paused: {self._in_a_row} calls in a row failed with {name} and none succeeded, the last with: "
            f"{self._last}; {_ADVICE.get(name, 'check the serving')}, then resume",
            cause="breaker",
        ) from self._last
