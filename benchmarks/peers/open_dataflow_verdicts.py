"""Which texts open-dataflow 1.0.13 keeps by each rule: the table that the tests compare with.

Run by the interpreter of an environment with open-dataflow: INPUT OUTPUT. INPUT has a JSON text on each
line (`python -m dataflow_assets_tests.operators.filters.rule_documents`), OUTPUT gets for each operator a
string of 1 and 0, one for each line.
"""

import json
import sys
from pathlib import Path

import pandas as pd
from dataflow.operators.general_text import (
    CapitalWordsFilter,
    CharNumberFilter,
    ColonEndFilter,
    ContentNullFilter,
    CurlyBracketFilter,
    HtmlEntityFilter,
    LineEndWithEllipsisFilter,
    LineStartWithBulletpointFilter,
    LineWithJavascriptFilter,
    LoremIpsumFilter,
    MeanWordLengthFilter,
    NoPuncFilter,
    SentenceNumberFilter,
    SpecialCharacterFilter,
    SymbolWordRatioFilter,
    UniqueWordsFilter,
    WatermarkFilter,
    WordNumberFilter,
)

FILTERS = {
    "filter_word_count": WordNumberFilter(),
    "filter_colon_end": ColonEndFilter(),
    "filter_sentence_count": SentenceNumberFilter(),
    "filter_ellipsis_lines": LineEndWithEllipsisFilter(),
    "filter_null_content": ContentNullFilter(),
    "filter_mean_word_length": MeanWordLengthFilter(),
    "filter_symbols_per_word": SymbolWordRatioFilter(),
    "filter_html_entities": HtmlEntityFilter(),
    "filter_no_punctuation": NoPuncFilter(),
    "filter_special_characters": SpecialCharacterFilter(),
    "filter_watermark": WatermarkFilter(),
    "filter_curly_brackets": CurlyBracketFilter(),
    "filter_capital_words": CapitalWordsFilter(),
    "filter_lorem_ipsum": LoremIpsumFilter(),
    "filter_unique_words": UniqueWordsFilter(),
    "filter_character_count": CharNumberFilter(),
    "filter_bullet_lines": LineStartWithBulletpointFilter(),
    "filter_javascript_lines": LineWithJavascriptFilter(),
}


class Memory:
    """A storage that keeps what is written."""

    def __init__(self, texts: list[str]) -> None:
        self.rows = pd.DataFrame({"text": texts, "place": range(len(texts))})

    def read(self, kind: str) -> pd.DataFrame:
        """The rows."""
        return self.rows

    def write(self, rows: pd.DataFrame) -> None:
        """Takes the rows that are kept."""
        self.rows = rows


texts = [json.loads(line) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
verdicts = {}
for name, operator in FILTERS.items():
    storage = Memory(texts)
    operator.run(storage, input_key="text")
    kept = set(storage.rows["place"])
    verdicts[name] = "".join(str(int(place in kept)) for place in range(len(texts)))
Path(sys.argv[2]).write_text(json.dumps(verdicts, indent=1) + "\n", encoding="utf-8")
