"""What a pipeline says of a source in a database."""

from typing import Literal

from pydantic import Field, SecretStr, field_validator

from dataflow_assets.sources.reading_spec import ReadingSpec


class SqlSource(ReadingSpec):
    """The rows of a query, in the order of a key that no two of them share."""

    sql: SecretStr = Field(
        description="The URL of the database, as SQLAlchemy has it: `postgresql://USER@HOST/DATABASE`, "
        "`mysql://…`, `sqlite:///FILE`; a relative file counts from the folder of the project. It is shown "
        "nowhere; write it as `${NAME}` all the same."
    )
    query: str = Field(min_length=1, description="One SELECT without parameters and without ORDER BY.")
    key: str = Field(min_length=1, description="A column of the query that is unique and never null.")
    updated: str | None = Field(
        default=None,
        min_length=1,
        description="A column of the query that grows whenever a row is changed, such as a time of change. "
        "With it a run sees what has changed without reading the rows.",
    )
    range_rows: int = Field(
        default=100_000,
        gt=0,
        description="The rows of one range of keys. Where one of them has changed, its range is read again.",
    )

    def settings(self) -> dict[str, object]:
        """Without the URL, which may hold a password: the same rows elsewhere are the same rows."""
        return {name: value for name, value in super().settings().items() if name != "sql"}

    @field_validator("query")
    @classmethod
    def _is_one_statement(cls, query: str) -> str:
        bare = query.strip().removesuffix(";").strip()
        if not bare or "\0" in bare:
            raise ValueError("expected one SELECT")
        return bare


class CorpusSource(ReadingSpec):
    """A data set of a store of corpora, a conversation or a turn a row."""

    corpus: SecretStr = Field(
        description="The store: a file, or the URL of a PostgreSQL, MySQL or MariaDB database. It is shown "
        "nowhere; write it as `${NAME}` all the same."
    )
    dataset: str = Field(min_length=1, description="The name of the data set.")
    rows: Literal["conversations", "turns"] = Field(
        default="conversations",
        description="What is one row: a conversation with the columns that it came with, or a turn with "
        "`data_prompt`, `data_response` and so on, whose row id ends in the id of the turn.",
    )

    def settings(self) -> dict[str, object]:
        """Without the store, whose URL may hold a password."""
        return {name: value for name, value in super().settings().items() if name != "corpus"}
