"""Answers a question several times and keeps the answer of the majority."""

from collections import Counter
from collections.abc import Callable, Mapping

import regex
from pydantic import Field, field_validator

from dataflow_assets.batch import Schema
from dataflow_assets.operators.llm.final_answer import Extract, final_answer, normalized
from dataflow_assets.operators.llm.operator import Ask, Done, Rejected
from dataflow_assets.operators.llm.prompt_params import GatedParams
from dataflow_assets.operators.llm.prompted import GatedOperator
from dataflow_assets.operators.llm.together import together
from dataflow_assets.operators.registry import register
from dataflow_assets.serving.calls import Answer, CallFailed


class _VoteParams(GatedParams):
    column: str = Field("instruction", min_length=1, description="The question; `{question}` in the prompt.")
    samples: int = Field(5, ge=2, le=1000, description="How often each question is answered.")
    min_agreement: float = Field(
        0.5, ge=0, le=1, description="Share of all samples that must have the winning answer, at least."
    )
    extract: Extract = Field(
        "auto", description="What is compared: see `pattern`; `auto` takes boxed or `Answer:`."
    )
    pattern: str | None = Field(
        None, description="A regular expression; its last match, or that one's first group, is compared."
    )
    prefix: str = Field("", description="Begins the names of the written columns.")

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            regex.compile(pattern or "")
        except regex.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return pattern


@register
class Vote(GatedOperator):
    """Answers a question `samples` times and keeps the majority's answer (self-consistency).

    Grain: one row in, at most one out; order and ids unchanged. Reads `column`. Writes, after
    `prefix`, `answer` (string: the whole text of the first sample that the majority agrees with),
    `final_answer` (string: what was compared), `agreement` (float, 0 to 1: its share of all samples)
    and `votes` (JSON list: the final answer of each sample, null where it had none). Rejects with
    `no_majority` where two answers lead together or agreement is under `min_agreement`. Compared
    without case, width, marks around and thousands separators: `$1,000.0$.` is `1000`, but `(3, 4)`,
    `.5` and `5!` are neither 34 nor 5 (Wang et al. 2022). Any failed sample fails the row; the others
    stay in the ledger. With a `seed`, sample n has `seed` + n.

    Example:
        - {name: voted, type: vote, params: {column: question, samples: 5, temperature: 0.8}}
    """

    name = "vote"
    version = "2"
    prompt_name = "vote"
    Params = _VoteParams
    params: _VoteParams

    def aliases(self) -> Mapping[str, str]:
        """`question` stands for its column."""
        return {"question": self.params.column}

    def writes(self) -> Schema:
        """The answer, and how sure it is."""
        prefix = self.params.prefix
        columns: Schema = {f"{prefix}answer": "string", f"{prefix}final_answer": "string"}
        return {**columns, f"{prefix}agreement": "float64", f"{prefix}votes": "json"}

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """The majority's answer, or a rejection."""
        messages = self.messages(row, self.prompt_of(row, {}))
        check = self._check(row)
        calls = [self.call(messages, sample=sample) for sample in range(self.params.samples)]
        ballots = await together([ask(call, check) for call in calls])
        votes = [vote for _, vote in ballots]
        winner = _winner(votes, self.params.min_agreement)
        if winner is None:
            return Rejected("no_majority", {"votes": votes})
        answer = next(text for text, vote in ballots if vote == winner)
        return self._values(answer, winner, votes)

    def _check(self, row: Mapping[str, object]) -> Callable[[Answer], tuple[str, str | None]]:
        text_check = self.text_check(row)

        def check(answer: Answer) -> tuple[str, str | None]:
            text = text_check(answer)
            try:
                found = final_answer(text, self.params.extract, self.params.pattern)
            except TimeoutError:
                raise CallFailed(
                    "gate:pattern", f"gate pattern: {self.params.pattern!r} took too long", raw=text
                ) from None
            return text, normalized(found or "") or None

        return check

    def _values(self, answer: str, winner: str, votes: list[str | None]) -> dict[str, object]:
        agreement = votes.count(winner) / len(votes)
        found = {"answer": answer, "final_answer": winner, "agreement": agreement, "votes": votes}
        return {f"{self.params.prefix}{name}": value for name, value in found.items()}


def _winner(votes: list[str | None], min_share: float) -> str | None:
    """The answer with the most votes, if it leads alone and has this share of all."""
    leading = Counter(vote for vote in votes if vote is not None).most_common(2)
    if not leading or leading[0][1] / len(votes) < min_share:
        return None
    return None if len(leading) == 2 and leading[1][1] == leading[0][1] else leading[0][0]
