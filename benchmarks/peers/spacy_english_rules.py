"""Writes the rules of spaCy's English tokenizer as JSON: `PYTHON spacy_english_rules.py > FILE`.

Run it with an environment that has spaCy; `dataflow_assets/text/english_rules.json` was made by 3.8.18.
"""

import json
import sys

import spacy
from spacy.pipeline.sentencizer import Sentencizer


def main() -> None:
    tokenizer = spacy.blank("en").tokenizer
    rules = {
        "made_from": f"spaCy {spacy.__version__}, MIT License, (C) 2016-2024 ExplosionAI GmbH",
        "prefix": tokenizer.prefix_search.__self__.pattern,
        "suffix": tokenizer.suffix_search.__self__.pattern,
        "infix": tokenizer.infix_finditer.__self__.pattern,
        "url": tokenizer.url_match.__self__.pattern,
        "special": {
            chunk: [next(iter(token.values())) for token in tokens]
            for chunk, tokens in sorted(tokenizer.rules.items())
            if not chunk.isspace()
        },
        "sentence_ends": "".join(sorted(Sentencizer.default_punct_chars)),
    }
    json.dump(rules, sys.stdout, ensure_ascii=True, indent=0)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
