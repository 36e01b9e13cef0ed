"""What a pipeline says of a source in ClickHouse."""

from pydantic import Field, SecretStr, field_validator

from dataflow_assets.sources.reading_spec import ReadingSpec


class ClickHouseSource(ReadingSpec):
    """The rows of a table or a query, in the order of a key that no two of them share."""

    clickhouse: SecretStr = Field(
        description="The table: `clickhouse://USER@HOST:PORT/DATABASE/TABLE`, without TABLE where there is a "
        "query. It is shown nowhere; the password may be in CLICKHOUSE_PASSWORD."
    )
    query: str | None = Field(
        default=None,
        min_length=1,
        description="One SELECT without ORDER BY. Default: all columns of the table; where rows of a table "
        "replace each other, say `SELECT * FROM TABLE FINAL`.",
    )
    key: str = Field(
        min_length=1,
        description="A column that is unique and never null: text, integer, UUID, date or time. Fast where "
        "the table is sorted by it.",
    )
    range_rows: int = Field(
        default=100_000,
        gt=0,
        description="The rows of one range of keys. Where one of them has changed, its range is read again.",
    )

    def settings(self) -> dict[str, object]:
        """Without the URL, which may hold a password: the same rows elsewhere are the same rows."""
        return {name: value for name, value in super().settings().items() if name != "clickhouse"}

    @field_validator("query")
    @classmethod
    def _is_one_statement(cls, query: str | None) -> str | None:
        bare = (query or "").strip().removesuffix(";").strip()
        if query is not None and (not bare or "\0" in bare):
            raise ValueError("expected one SELECT")
        return bare or None
