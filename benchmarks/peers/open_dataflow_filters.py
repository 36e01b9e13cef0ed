"""The peer of filter_23.py: the steps of open-dataflow 1.0.13's pipeline for pretraining text, in its order.

Run by the interpreter of an environment with open-dataflow: INPUT CACHE_FOLDER BLOCKLIST [minhash].
Without `minhash` that step is left out. BLOCKLIST gets a copy of the words that the peer blocks.
"""

import shutil
import sys
from pathlib import Path

import dataflow
from dataflow.operators.general_text import (
    BlocklistFilter,
    CapitalWordsFilter,
    CharNumberFilter,
    ColonEndFilter,
    ContentNullFilter,
    CurlyBracketFilter,
    HtmlEntityFilter,
    HtmlUrlRemoverRefiner,
    LineEndWithEllipsisFilter,
    LineStartWithBulletpointFilter,
    LineWithJavascriptFilter,
    LoremIpsumFilter,
    MeanWordLengthFilter,
    MinHashDeduplicateFilter,
    NoPuncFilter,
    RemoveEmojiRefiner,
    RemoveExtraSpacesRefiner,
    SentenceNumberFilter,
    SpecialCharacterFilter,
    SymbolWordRatioFilter,
    UniqueWordsFilter,
    WatermarkFilter,
    WordNumberFilter,
)
from dataflow.utils.storage import FileStorage

source, cache, blocklist, *options = sys.argv[1:]
words = Path(dataflow.__file__).parent / "operators" / "general_text" / "filter" / "blocklist" / "en.txt"
shutil.copyfile(words, blocklist)
storage = FileStorage(source, cache_path=cache, file_name_prefix="filters", cache_type="jsonl")
duplicates = MinHashDeduplicateFilter(num_perm=128, threshold=0.9, use_n_gram=True, ngram=5)
steps = [
    RemoveEmojiRefiner(),
    HtmlUrlRemoverRefiner(),
    RemoveExtraSpacesRefiner(),
    *([duplicates] if "minhash" in options else []),
    BlocklistFilter(),
    WordNumberFilter(min_words=20, max_words=100000),
    ColonEndFilter(),
    SentenceNumberFilter(min_sentences=3, max_sentences=7500),
    LineEndWithEllipsisFilter(threshold=0.3),
    ContentNullFilter(),
    MeanWordLengthFilter(min_length=3, max_length=10),
    SymbolWordRatioFilter(threshold=0.4),
    HtmlEntityFilter(),
    NoPuncFilter(threshold=112),
    SpecialCharacterFilter(),
    WatermarkFilter(watermarks=["Copyright", "Watermark", "Confidential"]),
    CurlyBracketFilter(threshold=0.025),
    CapitalWordsFilter(threshold=0.2, use_tokenizer=False),
    LoremIpsumFilter(threshold=3e-8),
    UniqueWordsFilter(threshold=0.1),
    CharNumberFilter(threshold=100),
    LineStartWithBulletpointFilter(threshold=0.9),
    LineWithJavascriptFilter(threshold=3),
]
for step in steps:
    step.run(storage.step(), input_key="text")
