"""The page as text: its structure, what is hidden in it, and what it never asks for."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from dataflow_assets.io.step_folder import StepFolder
from dataflow_assets.pipeline_work import PipelineWork
from dataflow_assets.report import choosing, profiles, render, samples
from dataflow_assets.report.gather import gather
from dataflow_assets.report.page import duration, page_of
from dataflow_assets_tests.report.hostile_rows import COLUMN, TEXTS, hostile_work
from dataflow_assets_tests.walk import pipeline, walk

_VOID = ("meta", "input", "br", "link", "img", "path", "rect")


class Outline(HTMLParser):
    """What a page consists of: tags with their attributes, headings, and whether all tags are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def named(self, *tags: str) -> list[tuple[str, dict[str, str | None]]]:
        return [each for each in self.tags if each[0] in tags]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> PipelineWork:
    return hostile_work(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def page(work: PipelineWork) -> str:
    return render(work)


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def test_every_tag_is_closed_and_no_data_became_one(outline: Outline):
    assert outline.open == []
    assert outline.named("img", "iframe", "base", "form", "object", "link") == []


def test_headings_go_down_one_level_at_a_time(outline: Outline):
    levels = [int(tag[1]) for tag, _ in outline.named("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_picture_has_words_or_is_hidden(outline: Outline):
    pictures = [attributes for tag, attributes in outline.tags if tag == "svg"]
    assert pictures
    assert all(each.get("aria-label") or each.get("aria-hidden") == "true" for each in pictures)


def test_every_id_is_there_once_and_every_link_within_the_page_leads_somewhere(outline: Outline):
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [attributes.get("href") or "" for tag, attributes in outline.tags if tag == "a"]
    assert {target.removeprefix("#") for target in targets} <= set(ids)


def test_no_attribute_runs_or_loads_anything(outline: Outline):
    names = {name for _, attributes in outline.tags for name in attributes}
    assert not {
        name for name in names if name.startswith("on") or name in ("src", "style", "srcset", "action")
    }


def test_the_policy_allows_the_two_own_parts_alone(page: str):
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;; style-src &#39;sha256-")
    assert "unsafe" not in policy and "http" not in policy


def test_the_samples_are_data_that_a_browser_can_read(page: str):
    (text,) = re.findall(r'<script type="application/json" id="samples-data">(.*?)</script>', page, re.DOTALL)
    rows = json.loads(text)["rows"]
    assert {row["ending"] for row in rows} == {"failed", "rejected", "unreadable", "kept"}
    assert page.isascii() or "\ud800" not in page


def test_a_row_says_what_became_of_it(work: PipelineWork):
    rows = {row["id"]: row for row in samples.samples_of(work).rows}
    failed = next(row for row in rows.values() if row["ending"] == "failed")
    assert (failed["at"], failed["why"]) == ("fails", "ValueError")
    assert failed["passages"][0]["message"].startswith("cannot do ")
    assert [name for name, _ in failed["row"]] == ["name", "text", COLUMN, "fail"]


def test_long_texts_are_cut(work: PipelineWork):
    found = samples.samples_of(work)
    longest = max(len(text or "") for row in found.rows for _, text in row["row"])
    assert found.max_chars <= longest <= found.max_chars + 100
    assert len(TEXTS["long"]) > 900_000


def test_many_large_rows_stay_within_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(samples, "MAX_SAMPLE_BYTES", 20_000)
    lines = [json.dumps({f"c{column}": "word " * 400 for column in range(30)}) for _ in range(60)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    found = samples.samples_of(walk(pipeline(tmp_path, tmp_path / "in.jsonl", batch_rows=10)))
    assert 0 < len(json.dumps(found.rows)) < 25_000
    assert found.rows and found.max_chars == 60


def test_batches_are_sampled_as_long_as_they_are_small_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "in.jsonl").write_text('{"text": "some words"}\n' * 40)
    work = walk(pipeline(tmp_path, tmp_path / "in.jsonl", batch_rows=4))
    assert samples.samples_of(work).batches == ["in_b00000", "in_b00009"]
    monkeypatch.setattr(choosing, "MAX_READ_BYTES", 600)
    assert samples.samples_of(work).batches == ["in_b00000"]


def test_rows_are_shown_from_their_start_through_a_shuffle(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "{"word " * (n % 9)}"}}\n' for n in range(200)))
    mixed = {"name": "mixed", "type": "shuffle", "params": {"seed": 3}}
    long = {"name": "long", "type": "filter_length", "params": {"min_chars": 10}}
    work = walk(pipeline(tmp_path, tmp_path / "in.jsonl", mixed, long, batch_rows=50))
    rows = samples.samples_of(work).rows
    assert {row["began"] for row in rows} == {"source"}
    assert {row["ending"] for row in rows} == {"rejected", "kept"}


def test_a_row_that_a_moving_step_drops_was_not_kept_by_it(tmp_path: Path):
    pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    (tmp_path / "in.jsonl").write_text("".join(f'{{"n": {n % 2}}}\n' for n in range(600)))
    mixed = {"name": "mixed", "type": "shuffle", "params": {"seed": 3}}
    odd = {"name": "odd", "type": "sql", "params": {"query": "select * from input where n = 1"}}
    rows = samples.samples_of(walk(pipeline(tmp_path, tmp_path / "in.jsonl", mixed, odd, batch_rows=20))).rows
    assert {row["ending"]: row["began"] for row in rows} == {"rejected": "mixed", "kept": "odd"}
    assert all(("n", "1") in map(tuple, row["row"]) for row in rows if row["ending"] == "kept")


def test_rows_of_two_branches_begin_behind_the_shuffle_of_their_own(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text("".join(f'{{"text": "t{n}"}}\n' for n in range(600)))
    shuffles = [
        {"name": name, "type": "shuffle", "params": {"seed": seed}, "depends_on": ["lower"]}
        for seed, name in enumerate(("one", "two"))
    ]
    filters = [
        {"name": name, "type": "filter_length", "params": {"min_chars": 4}, "depends_on": [above]}
        for name, above in (("a", "one"), ("b", "two"))
    ]
    lower = {"name": "lower", "type": "lowercase"}
    work = walk(pipeline(tmp_path, tmp_path / "in.jsonl", lower, *shuffles, *filters, batch_rows=20))
    rejected = [row for row in samples.samples_of(work).rows if row["ending"] == "rejected"]
    began = {(row["began"], row["at"]) for row in rejected if row["began"] != "source"}
    assert ("one", "a") in began <= {("one", "a"), ("two", "b")}


def test_a_file_name_turns_no_direction(tmp_path: Path):
    name = "a\u202etxt.jsonl"
    (tmp_path / name).write_text('{"text": "a"}\n')
    [row] = samples.samples_of(walk(pipeline(tmp_path, tmp_path / name))).rows
    assert row["place"] == "a\\u202etxt.jsonl, line 1"


def test_profiles_of_some_batches_stand_for_very_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in.jsonl").write_text('{"text": "some words"}\n' * 40)
    work = walk(pipeline(tmp_path, tmp_path / "in.jsonl", batch_rows=4))
    monkeypatch.setattr(profiles, "MAX_PROFILES", 10)
    after = gather(work).last.after or {}
    assert (after["rows"], after["batches_left_out"]) == (20, 5)
    assert "Counts of 20 rows (batches left out: 5)." in render(work)


def test_a_batch_without_a_profile_is_not_read_for_one(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"text": "some words"}\n' * 8)
    work = walk(pipeline(tmp_path, tmp_path / "in.jsonl", batch_rows=4))
    for file in work.folder_of("kept").path.glob("_profiles/*00001*"):
        file.unlink()
    after = gather(work).last.after or {}
    assert (after["rows"], after["batches_left_out"]) == (4, 1)


def test_the_report_of_a_pipeline_that_was_never_run(tmp_path: Path):
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    page = render(PipelineWork(pipeline(tmp_path, tmp_path / "in.jsonl")))
    assert "not made yet" in page and "No rows yet" in page
    assert Outline(page).open == []


def test_only_the_sampled_batches_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in.jsonl").write_text('{"text": "some words"}\n' * 400)
    work = walk(pipeline(tmp_path, tmp_path / "in.jsonl", batch_rows=4))
    read: set[str] = set()
    reading = StepFolder.read
    monkeypatch.setattr(
        StepFolder,
        "read",
        lambda self, key, *rest, **more: (read.add(key), reading(self, key, *rest, **more))[1],
    )
    assert "some words" in render(work)
    assert read == {"in_b00000", "in_b00099"}


def test_secrets_and_values_of_the_environment_are_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from dataflow_assets.pipeline.file import load_pipeline

    monkeypatch.setenv("REPORT_KEY", "sk-very-secret-value")
    monkeypatch.setenv("REPORT_PREFIX", "prefix-of-the-environment")
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    (tmp_path / "p.yaml").write_text(
        "name: p\nroot: data\nsource: {path: in.jsonl}\n"
        "servings:\n  default: {type: openai, model: m, api_key: '${REPORT_KEY}', "
        "headers: {X-Key: '${REPORT_KEY}'}, base_url: 'http://127.0.0.1:9/v1', "
        "parameters: {user: '${REPORT_PREFIX}'}}\n"
        "steps:\n  - {name: asked, type: generate, params: {prompt: '${REPORT_PREFIX}: {text}', "
        "output_column: answer, max_tokens: 5}}\n"
    )
    data = gather(PipelineWork(load_pipeline(tmp_path / "p.yaml")))
    page = page_of(data)
    assert "sk-very-secret" not in page and "prefix-of-the-environment" not in page
    assert "**********" in page and "${REPORT_PREFIX}" in page
    assert data.models == ["m"]


def _luminance(colour: str) -> float:
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_texts_have_contrast(mode: int):
    css = files("dataflow_assets.report").joinpath("templates/report.css").read_text()
    block = css.split("prefers-color-scheme: dark")[mode]
    colours = {
        name: f"#{value[1:] if len(value) == 7 else ''.join(each * 2 for each in value[1:])}"
        for name, value in re.findall(r"--([a-z]+): (#[0-9a-f]{3,6})", block)
    }
    pairs = [(front, back) for front in ("text", "quiet", "link") for back in ("back", "raised")]
    pairs += [(name, "back") for name in ("kept", "rejected", "failed")] + [("text", "add"), ("text", "cut")]
    for front, back in pairs:
        light, dark = sorted((_luminance(colours[front]), _luminance(colours[back])), reverse=True)
        ratio = (light + 0.05) / (dark + 0.05)
        assert ratio >= 4.5, (front, back, ratio)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.04, "0.0 s"), (3.25, "3.2 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_are_short(seconds: float, shown: str):
    assert duration(seconds) == shown
