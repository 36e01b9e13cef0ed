"""Takes secrets out of what a server sends back."""

from collections.abc import Iterable
from urllib.parse import quote

from dataflow_assets.serving.calls import CallFailed

HIDDEN = "***"
# Shorter ones ("x", "EMPTY" for a local server) are no secrets, and common in any text.
_MIN_CHARS = 6


class Redaction:
    """Knows some secrets, and replaces them by `***`, also where they are escaped as in JSON or URLs."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found: set[str] = set()
        for secret in filter(lambda secret: len(secret) >= _MIN_CHARS, secrets):
            found |= {secret, secret.replace("/", "\\/"), quote(secret, safe=""), quote(secret)}
        self._secrets = sorted(found, key=len, reverse=True)

    def __repr__(self) -> str:
        return "Redaction(***)"

    def text(self, text: str) -> str:
        """The text without the secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, HIDDEN)
        return text

    def failure(self, failed: CallFailed) -> CallFailed:
        """The same error without the secrets, and without the errors that led to it."""
        failed.args = tuple(map(self.text, map(str, failed.args)))
        failed.raw = self.text(failed.raw)
        failed.__cause__ = failed.__context__ = None
        return failed
