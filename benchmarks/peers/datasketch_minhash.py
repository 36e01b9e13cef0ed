"""The peer of deduplication.py: near-duplicates by datasketch's MinHash LSH, candidates not verified.

Run by an interpreter with datasketch and numpy: INPUT OUTPUT UNIT BANDS ROWS. Writes the kept rows.
"""

import json
import re
import sys

from datasketch import MinHash, MinHashLSH

_PUNCTUATION = re.compile(r"[\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def shingles(text: str, unit: str) -> set[bytes]:
    simple = _PUNCTUATION.sub(" ", _NUMBER.sub("0", text.lower())).strip()
    if unit == "words":
        words = simple.split()
        return {" ".join(words[begin : begin + 5]).encode() for begin in range(len(words) - 4)}
    return {simple[begin : begin + 5].encode() for begin in range(len(simple) - 4)}


source, target, unit, bands, rows = sys.argv[1:6]
lsh = MinHashLSH(num_perm=int(bands) * int(rows), params=(int(bands), int(rows)))
with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
    for number, line in enumerate(lines):
        minhash = MinHash(num_perm=int(bands) * int(rows))
        found = shingles(json.loads(line)["text"], unit)
        if found:
            minhash.update_batch(list(found))
            if lsh.query(minhash):
                continue
            lsh.insert(number, minhash)
        out.write(line)
