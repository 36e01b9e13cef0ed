"""What decides whether a batch must be done again: hashes of what an operator does and was given."""

from collections.abc import Mapping

import orjson
import xxhash

from dataflow_assets.errors import ConfigError, DataflowError
from dataflow_assets.io.step_folder import Origin
from dataflow_assets.operators.operator import Operator


def operator_fingerprint(operator: Operator) -> str:
    """The hash of what an operator does: name, version, parameters, and its own identity.

    Raises ConfigError where the operator cannot say what that is.
    """
    try:
        return hash_of(
            [operator.name, operator.version, operator.fingerprint_of_params(), operator.identity()]
        )
    except DataflowError:
        raise
    except (Exception, SystemExit) as error:  # a user's operator may raise anything
        raise ConfigError(
            f"operator {operator.name!r} cannot say what decides its result (`identity`, "
            f"`fingerprint_of_params`): {type(error).__name__}: {error}"
        ) from error


def origin_of(
    operator: Operator,
    fingerprint: str,
    rows_in: int,
    inputs: Mapping[str, str],
    started_at: float,
    usage: Mapping[str, float] = {},
    counts: Mapping[str, int] = {},
) -> Origin:
    """Where a batch that this operator made comes from."""
    code = operator_fingerprint(operator)
    version = operator.version
    return Origin(operator.name, version, code, fingerprint, rows_in, inputs, started_at, usage, counts)


def hash_of(value: object) -> str:
    """The hash of a JSON value, whatever the order of its keys."""
    return xxhash.xxh3_128_hexdigest(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
