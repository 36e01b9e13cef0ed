"""`dataflow-assets corpus` and pipelines that read from a store and write to it, on each database."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dataflow_assets.batch import rows_of
from dataflow_assets.corpora.queries import TurnQuery
from dataflow_assets.corpora.store import Corpora
from dataflow_assets.corpora.writing import write_back
from dataflow_assets_tests.conftest import Command
from dataflow_assets_tests.corpora.conftest import emptied
from dataflow_assets_tests.corpora.conversations import real_table
from dataflow_assets_tests.corpora.marking import filled, responses, revisions

STEPS = "steps:\n  - {name: low, type: lowercase, params: {column: data_response, on_null: keep}}\n"

MARK_EACH = "steps:\n  - {name: marked, type: 'dataflow_assets_tests.corpora.marking:Marked'}\n"
WRITE_BACK = ("corpus", "write-back", "turns.yaml", "--write", "data_response")


@pytest.fixture
def place(stores: Callable[[str], str]) -> str:
    """One kind for all: the others are tested where no command has to start."""
    return emptied(stores("sqlite"))


@pytest.fixture
def folder(tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with real conversations in a file, and the store in the environment."""
    monkeypatch.setenv("DATAFLOW_CORPORA", place)
    rows = [{k: v for k, v in row.items() if k != "row_id"} for row in rows_of(real_table(60))]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "chat.jsonl").write_text("\n".join([*lines[:30], "no json", *lines[30:]]))
    return tmp_path


def pipeline(
    folder: Path, rows: str, steps: str = STEPS, name: str = "chat", batch_rows: object = 20
) -> None:
    """A pipeline on the data set `chat`."""
    source = f"{{corpus: '${{DATAFLOW_CORPORA}}', dataset: {name}, rows: {rows}}}"
    (folder / f"{rows}.yaml").write_text(f"name: {rows}\nsource: {source}\nbatch_rows: {batch_rows}\n{steps}")


def test_what_was_imported_is_exported_as_it_was(folder: Path, command_here: Command) -> None:
    done = command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    assert "60 new conversations" in done.out
    assert "1 records were not read: malformed JSON" in done.out
    assert command_here(folder, "corpus", "export", "chat", "--to", "out.jsonl").code == 0
    given = [
        json.loads(line) for line in (folder / "chat.jsonl").read_text().split("\n") if "no json" not in line
    ]
    came = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert came == given


def test_another_file_of_the_same_name_is_kept_beside_it_once_renamed(
    folder: Path, command_here: Command
) -> None:
    command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    (folder / "b").mkdir()
    (folder / "b/chat.jsonl").write_text('{"messages": [{"role": "user", "content": "q"}]}\n')
    refused = command_here(folder, "corpus", "import", "chat", "b/chat.jsonl")
    assert "b/chat.jsonl is another now." in refused.err and "rename this one to keep both" in refused.err
    (folder / "b/chat.jsonl").rename(folder / "b/chat_b.jsonl")
    assert "1 new conversations" in command_here(folder, "corpus", "import", "chat", "b/chat_b.jsonl").out


def test_columns_that_only_look_like_those_of_a_turn_are_told(folder: Path, command_here: Command) -> None:
    (folder / "typo.jsonl").write_text('{"id": 1, "instruction": "a", "respons": "b"}\n')
    told = command_here(folder, "corpus", "import", "typo", "typo.jsonl").out
    assert "no column is the response; kept beside the turns, not as their text: id, respons" in told
    right = command_here(
        folder, "corpus", "import", "said", "typo.jsonl", "--prompt", "instruction", "--response", "respons"
    )
    assert "1 new turns" in right.out and "no column" not in right.out


def test_a_file_is_imported_once(folder: Path, command_here: Command) -> None:
    command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    again = command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    assert "0 new turns, 0 replaced, 0 as they were, 0 removed; 0 read, 1 passed over" in again.out
    (folder / "chat.jsonl").write_text('{"messages": []}\n')
    other = command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    assert (other.code, "chat.jsonl is another now. If that was an earlier" in other.err) == (2, True)
    replaced = command_here(folder, "corpus", "import", "chat", "chat.jsonl", "--replace")
    assert "1 replaced" in replaced.out
    same = command_here(folder, "corpus", "import", "chat", "chat.jsonl", "--replace")
    assert (same.code, "0 replaced, 1 as they were, 0 removed; 1 read" in same.out) == (0, True)


def test_an_import_that_is_killed_goes_on(folder: Path, place: str, command_here: Command) -> None:
    (folder / "big.jsonl").write_text('{"prompt": "a", "response": "b"}\n' * 2500)
    code = "from dataflow_assets_tests.corpora.dying_import import main; main()"
    command = [sys.executable, "-c", code, place, str(folder / "big.jsonl")]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    with Corpora(place) as corpora:
        assert corpora.datasets()[0].conversations == 1000
    done = command_here(folder, "corpus", "import", "big", "big.jsonl")
    assert "1,500 new conversations" in done.out
    with Corpora(place) as corpora:
        numbers = [number for number, _ in corpora.conversations(corpora.dataset("big"))]
    assert numbers == list(range(1, 2501))


def test_turns_are_shown_found_deleted_and_restored(folder: Path, place: str, command_here: Command) -> None:
    with Corpora(place) as corpora:
        filled(corpora, 30)
    shown = command_here(folder, "corpus", "show", "many", "--limit", "4")
    assert "more may follow: --after" in shown.out
    found = json.loads(command_here(folder, "corpus", "show", "many", "--text", "29.1", "--json").out)
    assert [turn["data_response"] for turn in found] == ["29.1"]
    assert command_here(folder, "corpus", "delete", "many").code == 2
    assert command_here(folder, "corpus", "delete", "many", "--row", "2").out == "2 turns deleted\n"
    assert command_here(folder, "corpus", "cat", "many", "2").code == 2
    (counts,) = json.loads(command_here(folder, "corpus", "list", "--json").out)
    assert counts == {"name": "many", "conversations": 29, "turns": 58, "deleted_turns": 2}
    assert command_here(folder, "corpus", "restore", "many", "--all").out == "2 turns restored\n"
    assert len(json.loads(command_here(folder, "corpus", "cat", "many", "2").out)["messages"]) == 4


def test_a_data_set_goes_through_a_pipeline_into_another(
    folder: Path, place: str, command_here: Command
) -> None:
    command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    pipeline(folder, "conversations", "steps:\n  - {name: few, type: limit, params: {rows: 25}}\n")
    assert command_here(folder, "run", "conversations.yaml").code == 0
    put = ("corpus", "put", "conversations.yaml", "--dataset")
    assert "25 new conversations" in command_here(folder, *put, "few").out
    assert "0 new conversations, 0 new turns" in command_here(folder, *put, "few").out
    refused = command_here(folder, *put, "chat")
    assert (refused.code, "expected another one" in refused.err) == (2, True)
    with Corpora(place) as corpora:
        few, chat = (list(corpora.conversations(corpora.dataset(name))) for name in ("few", "chat"))
    assert few == chat[:25]


def test_a_data_set_becomes_the_step_exactly(folder: Path, place: str, command_here: Command) -> None:
    command_here(folder, "corpus", "import", "chat", "chat.jsonl")
    put = ("corpus", "put", "conversations.yaml", "--dataset", "few")
    for rows, told in ((25, "25 new"), (20, "0 new conversations"), (22, "0 new conversations")):
        pipeline(
            folder, "conversations", f"steps:\n  - {{name: few, type: limit, params: {{rows: {rows}}}}}\n"
        )
        assert command_here(folder, "run", "conversations.yaml").code == 0
        done = command_here(folder, *put, "--exactly")
        assert (done.code, told in done.out) == (0, True)
        with Corpora(place) as corpora:
            few, chat = (list(corpora.conversations(corpora.dataset(name))) for name in ("few", "chat"))
        assert few == chat[:rows]
    refused = command_here(folder, *put, "--exactly", "--allow-partial")
    assert (refused.code, "without `allow_partial`" in refused.err) == (2, True)


def test_columns_of_a_run_are_written_back_to_their_turns(
    folder: Path, place: str, command_here: Command
) -> None:
    with Corpora(place) as corpora:
        dataset = filled(corpora, 30)
        pipeline(folder, "turns", MARK_EACH, "many")
        assert command_here(folder, "run", "turns.yaml").code == 0
        assert command_here(folder, *WRITE_BACK).out == "60 turns written\n"
        before = revisions(corpora, dataset)
        assert command_here(folder, *WRITE_BACK).out == "0 turns written, 60 had these values already\n"
        assert revisions(corpora, dataset) == before
        assert all(text.endswith("+") and not text.endswith("++") for text in responses(corpora, dataset))
        assert corpora.row_count(dataset) == 60


@pytest.mark.parametrize("batch_rows", [20, "null"])
@pytest.mark.parametrize("place_of_turn", [0, 59])
def test_a_turn_that_another_has_changed_is_not_written_over(
    folder: Path,
    place: str,
    command_here: Command,
    monkeypatch: pytest.MonkeyPatch,
    batch_rows: object,
    place_of_turn: int,
) -> None:
    monkeypatch.setattr("dataflow_assets.sources.sql.corpus_pieces._BLOCK", 10)
    with Corpora(place) as corpora:
        dataset = filled(corpora, 30)
        pipeline(folder, "turns", MARK_EACH, "many", batch_rows)
        assert command_here(folder, "run", "turns.yaml").code == 0
        turn = corpora.turns(dataset, TurnQuery(), 0, 60)[place_of_turn]
        change = {"id": turn.id, "data_response": "by hand", "data_prompt": "by hand too"}
        corpora.database.write(lambda on: write_back(on, dataset.id, [change]))
        done = command_here(folder, *WRITE_BACK)
        assert (done.code, f"data_response of turn {turn.id} was changed by another" in done.err) == (1, True)
        assert sum(text.endswith("+") for text in responses(corpora, dataset)) < 60
        assert command_here(folder, "run", "turns.yaml").code == 0
        assert command_here(folder, *WRITE_BACK).code == 0
        assert "by hand+" in responses(corpora, dataset)


def test_the_steps_of_a_pipeline_work_in_place(folder: Path, place: str, command_here: Command) -> None:
    with Corpora(place) as corpora:
        dataset = filled(corpora, 10)
        pipeline(folder, "turns", MARK_EACH, "many")
        for _ in range(2):
            done = command_here(folder, "corpus", "enhance", "turns.yaml", "--task", "once")
            assert "once: 20 turns, 20 written" in done.out
            assert "came after" not in done.out
        assert set(responses(corpora, dataset)) == {f"{n}.{t}+" for n in range(10) for t in range(2)}
        filled(corpora, 3, first=10)
    done = command_here(folder, "corpus", "enhance", "turns.yaml", "--task", "once")
    assert "6 turns came after the task began and are not of it" in done.out
    (task,) = json.loads(command_here(folder, "corpus", "tasks", "--json").out)
    assert (task["dataset"], task["processed"], task["is_done"]) == ("many", 20, True)
    assert command_here(folder, "corpus", "forget", "many", "once").code == 0
    assert "no task 'once'" in command_here(folder, "corpus", "forget", "many", "once").err


@pytest.mark.parametrize(
    ("rows", "steps", "reason"),
    [
        ("conversations", STEPS, "is not `corpus` with `rows: turns`"),
        (
            "turns",
            "steps:\n  - {name: a, type: drop_duplicates, params: {columns: [data_prompt]}}\n",
            "in place",
        ),
        (
            "turns",
            f"{STEPS}  - {{name: b, type: lowercase, params: {{column: data_prompt}}, depends_on: []}}\n",
            "in a row",
        ),
    ],
)
def test_a_pipeline_that_cannot_work_in_place_is_refused(
    tmp_path: Path, command_here: Command, monkeypatch: pytest.MonkeyPatch, rows: str, steps: str, reason: str
) -> None:
    monkeypatch.setenv("DATAFLOW_CORPORA", str(tmp_path / "store"))
    with Corpora(str(tmp_path / "store"), create=True) as corpora:
        filled(corpora, 1)
    pipeline(tmp_path, rows, steps, "many")
    refused = command_here(tmp_path, "corpus", "enhance", f"{rows}.yaml")
    assert (refused.code, reason in refused.err) == (2, True)


def test_markup_and_control_characters_are_shown_as_text(tmp_path: Path, command_here: Command) -> None:
    (tmp_path / "in.jsonl").write_text('{"prompt": "\\u001b[31m red [bold]x[/bold]", "response": "b"}\n')
    command_here(tmp_path, "corpus", "import", "a", "in.jsonl", "--store", "s.db")
    shown = command_here(tmp_path, "corpus", "show", "a", "--store", "s.db").out
    assert r"\x1b[31m red [bold]x[/bold]" in shown


def test_columns_that_say_nothing_are_named(tmp_path: Path, command_here: Command) -> None:
    (tmp_path / "in.jsonl").write_text('{"ask": "a", "say": "b"}\n')
    importing = ("corpus", "import", "a", "in.jsonl", "--store", "s.db")
    assert "the columns ask, say are no conversation" in command_here(tmp_path, *importing).err
    assert "1 new" in command_here(tmp_path, *importing, "--prompt", "ask", "--response", "say").out
    both = command_here(tmp_path, *importing, "--prompt", "ask", "--messages", "say")
    assert "expected one of --messages, --sharegpt" in both.err
