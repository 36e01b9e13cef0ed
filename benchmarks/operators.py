"""The operators against their references, one part each: documents per core-second and the like.

    python -m benchmarks.operators filters --language en --documents FILE.jsonl [--peer-python PATH]

Every part prints one JSON line a measurement, its peer measured in the same go.
"""

import argparse
import json
from pathlib import Path

from benchmarks import filter_chain

# A part has a docstring, `add_arguments(parser)` and `measure(options)`, which gives JSON objects.
_PARTS = {"filters": filter_chain}


def main() -> None:
    """Runs one part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, help="write all results to this JSON file too")
    parts = parser.add_subparsers(dest="part", required=True)
    for name, part in _PARTS.items():
        part.add_arguments(parts.add_parser(name, help=(part.__doc__ or "").splitlines()[0]))
    options = parser.parse_args()
    results = []
    for result in _PARTS[options.part].measure(options):
        print(json.dumps(result), flush=True)
        results.append(result)
    if options.to:
        options.to.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
