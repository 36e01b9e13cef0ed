"""Who is told of a run that failed, as a pipeline says it."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dataflow_assets.pipeline.problems import shown


def _web_address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"expected an address that begins with http:// or https:// (found {shown(url)})")
    return url


WebAddress = Annotated[str, AfterValidator(_web_address)]


class FailureNotice(BaseModel):
    """A webhook, a command, or both; each is given the same JSON document about the run."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    webhook: WebAddress | None = Field(
        default=None, description="Address to which the JSON is sent with POST."
    )
    command: list[str] | None = Field(
        default=None,
        min_length=1,
        description="A program and its arguments, run without a shell; the JSON comes on its standard input.",
    )
