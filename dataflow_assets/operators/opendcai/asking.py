"""`opendcai_llm`: an operator of open-dataflow that asks a model, one row at a time, many rows at once."""

import asyncio
import importlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, model_validator

from dataflow_assets.batch import ROW_ID, ColumnType, Schema, infer_type
from dataflow_assets.errors import ConfigError, RunError, Stopped, WrongType
from dataflow_assets.operators.llm.operator import Ask, Done, LLMOperator, Rejected, ServingParams
from dataflow_assets.operators.opendcai.declared import Declared
from dataflow_assets.operators.opendcai.frames import Given, Returned, returned_rows
from dataflow_assets.operators.opendcai.operator import OpenDCAIOperator, OpenDCAIParams
from dataflow_assets.operators.opendcai.places import PACKAGE
from dataflow_assets.operators.opendcai.serving import AnyServing, RowServing
from dataflow_assets.operators.opendcai.storage import MemoryStorage
from dataflow_assets.operators.registry import register

Result = TypeVar("Result")


class OpenDCAILLMParams(OpenDCAIParams, ServingParams):
    """Which class, and which serving it asks."""

    serving_argument: str | None = Field(
        default=None,
        description="The argument of the class that gets the serving. Default: all that are one, as it says.",
    )

    @model_validator(mode="after")
    def _is_of_rows(self) -> "OpenDCAILLMParams":
        if self.scope not in (None, "row"):
            raise ValueError(f"each row asks by itself, so scope cannot be {self.scope!r}")
        return self


class _Instance(NamedTuple):
    """An object of the class, which works on one row at a time, and the serving that it was made with."""

    operator: Any
    serving: AnyServing


@register
class OpenDCAILLM(OpenDCAIOperator, LLMOperator):
    """Runs an operator of the open-dataflow package that asks a model, over a serving of the pipeline.

    Grain: one row in, at most one out, or with `splits` some children `<row_id>/<n>`; order unchanged.
    The operator gets one row at a time, many at once, and asks through a serving of the pipeline:
    ledger, budgets, retries and limits hold as for our own operators. A call without a usable answer
    fails its row, whatever the operator makes of it; a row that it leaves out is rejected with its
    class as the reason. Values that it did not change stay as they were. Operators that look at
    several rows at once cannot be run.

    Reads what arguments `input_…` of `run` name, writes what `output_…` name (JSON, or as in
    `columns`). The step is redone when the package's version changes. Needs open-dataflow and what the
    class's module imports.

    Example:
        - name: answered
          type: opendcai_llm
          params: {operator: PromptedGenerator, run: {input_key: text, output_key: answer}}
    """

    name = "opendcai_llm"
    Params = OpenDCAILLMParams
    params: OpenDCAILLMParams

    def __init__(self, params: OpenDCAILLMParams) -> None:
        super().__init__(params)
        self._lock = threading.Lock()
        self._free: list[_Instance] = []

    def identity(self) -> Mapping[str, object]:
        """The version of the class, and the model."""
        return {**OpenDCAIOperator.identity(self), **self.model_identity}

    def output_schema(self, schema: Schema) -> Schema:
        """The columns of the class, and the usage column."""
        usage: Schema = {} if self.usage_column is None else {self.usage_column: "json"}
        return {**OpenDCAIOperator.output_schema(self, schema), **usage}

    def check_ready(self) -> None:
        """Raises ConfigError as for any class, and for one that looks at several rows."""
        if self.row_scope != "row":
            raise ConfigError(
                f"{self.label} looks at several rows at once; as it asks a model, each row is worked on by "
                "itself. Say `scope: row` where that is not so"
            )
        super().check_ready()

    def given_servings(self, found: Declared) -> list[str]:
        """The arguments that get the serving."""
        named = self.params.serving_argument
        servings = found.servings if named is None else [named]
        if not servings:
            raise ConfigError(
                f"{found.place.name} has no argument for a serving; use the type `opendcai`, or name it by "
                "`serving_argument`"
            )
        return [name for name in servings if name not in self.params.init]

    async def do(self, row: Mapping[str, object], ask: Ask) -> Done:
        """What the operator made of the row. Raises what it raised, or the failure of a call that it hid."""
        given = {"temperature": self.params.temperature, "max_tokens": self.params.max_tokens}
        parameters = {
            name: value for name, value in {**given, "seed": self.params.seed}.items() if value is not None
        }
        serving = RowServing(ask, asyncio.get_running_loop(), parameters)
        try:
            return await _in_thread(lambda: self._row(row, serving))
        finally:
            serving.end()

    def _row(self, row: Mapping[str, object], serving: RowServing) -> Done:
        kinds: dict[str, ColumnType] = {name: infer_type([value]) or "string" for name, value in row.items()}
        given = Given({name: [value] for name, value in row.items()}, kinds)
        storage = MemoryStorage(given)
        instance = self._instance()
        instance.serving.row = serving
        try:
            instance.operator.run(storage, **self.params.run)
        except (Exception, SystemExit) as error:
            raise serving.error or error from error
        finally:
            instance.serving.row = None
        if serving.error is not None:
            raise serving.error
        with self._lock:
            self._free.append(instance)
        return self._done(storage, given)

    def _instance(self) -> _Instance:
        """One that no other row is using; one that raised is not used again."""
        with self._lock:
            if self._free:
                return self._free.pop()
        serving = AnyServing()
        found = self.declared
        assert found is not None
        importlib.import_module(f"{PACKAGE}.core").LLMServingABC.register(AnyServing)
        return _Instance(self.made(dict.fromkeys(self.given_servings(found), serving)), serving)

    def _done(self, storage: MemoryStorage, given: Given) -> Done:
        if storage.written is None:
            raise WrongType(f"wrong type: {self.label} wrote nothing for this row")
        frame = storage.written
        frame = frame.assign(**{ROW_ID: [given.row_ids[0]] * len(frame)})
        try:
            found = returned_rows(frame, given, self.label)
        except RunError as error:
            raise WrongType(f"wrong type: {error}") from error
        rows = _rows(found)
        if not rows:
            return Rejected(self.label)
        if self.splits:
            return rows
        if len(rows) > 1:
            raise WrongType(
                f"wrong type: {self.label} wrote {len(rows)} rows for one; say `splits: true`, their ids are "
                "then <row_id>/<n>"
            )
        return rows[0]

    def close(self) -> None:
        """Gives the instances up."""
        with self._lock:
            self._free.clear()


def _rows(found: Returned) -> list[dict[str, object]]:
    """The new values of each row."""
    return [
        {name: values[number] for name, values in found.changed.items()}
        for number in range(len(found.places))
    ]


async def _in_thread(work: Callable[[], Result]) -> Result:
    """What the work gives, done in a thread of its own: as many rows wait for answers as are in hand."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def tell(result: Result | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error if isinstance(error, Exception) else Stopped("the row was given up"))
        else:
            done.set_result(result)  # pyright: ignore[reportArgumentType]

    def run() -> None:
        result: Result | None = None
        error: BaseException | None = None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001  it is raised where the thread is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(tell, result, error)
        except RuntimeError:
            return  # the loop is closed: nobody waits

    threading.Thread(target=run, name="opendcai", daemon=True).start()
    return await done
