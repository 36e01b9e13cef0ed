"""The peer of cpu_pipeline.py: the same four steps with open-dataflow 1.0.13, every step written.

Run by the interpreter of an environment with open-dataflow: INPUT CACHE_FOLDER FORMAT.
"""

import sys

from dataflow.operators.general_text import (
    CharNumberFilter,
    HashDeduplicateFilter,
    HtmlUrlRemoverRefiner,
    LowercaseRefiner,
)
from dataflow.utils.storage import FileStorage

source, cache, format_ = sys.argv[1:4]
storage = FileStorage(source, cache_path=cache, file_name_prefix="four", cache_type=format_)
LowercaseRefiner().run(storage.step(), input_key="text")
HtmlUrlRemoverRefiner().run(storage.step(), input_key="text")
CharNumberFilter(threshold=100).run(storage.step(), input_key="text")
HashDeduplicateFilter(hash_func="xxh3").run(storage.step(), input_key="text")
