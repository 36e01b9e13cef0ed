"""The peer of deduplication.py: near-duplicates by open-dataflow 1.0.13, as it comes.

Run by the interpreter of an environment with open-dataflow: INPUT CACHE_FOLDER THRESHOLD.
"""

import sys

from dataflow.operators.general_text import MinHashDeduplicateFilter
from dataflow.utils.storage import FileStorage

source, cache, threshold = sys.argv[1:4]
storage = FileStorage(source, cache_path=cache, file_name_prefix="near", cache_type="jsonl")
operator = MinHashDeduplicateFilter(num_perm=112, threshold=float(threshold), ngram=5)
operator.run(storage.step(), input_key="text")
