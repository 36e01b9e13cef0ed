"""Anomalies that are planted in real texts: each alarm fires with the right share, none in clean data."""

import pytest

from dataflow_assets_tests.expectations.planted import PLANTED, data_set, rules_for
from dataflow_assets_tests.expectations.projects import judged
from dataflow_assets_tests.expectations.real_texts import sentences

SETS = [(language, seed) for seed in range(10) for language in ("en", "zh")]
CLOSE = 0.03


def alarms(folder, kind, language, seed):
    """The shares that broken rules tell, by the anomaly that each looks for; the planted share."""
    texts = {name: sentences(name) for name in ("en", "zh")}
    planted = data_set(kind, language, texts, seed)
    rules = rules_for(language)
    found = judged(folder, planted.rows, *rules.values(), batch_rows=80)
    broken = {
        name: result.value for name, result in zip(rules, found, strict=True) if result.passed is not True
    }
    return broken, planted.share


@pytest.mark.parametrize("kind", PLANTED)
def test_an_alarm_fires_with_the_right_share(tmp_path, kind):
    broken, share = alarms(tmp_path, kind, "zh", 100)
    assert broken.get(kind) == pytest.approx(share, abs=CLOSE)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTED)
def test_each_alarm_fires_in_every_data_set(tmp_path, kind):
    for language, seed in SETS:
        broken, share = alarms(tmp_path / f"{language}{seed}", kind, language, seed)
        assert broken.get(kind) == pytest.approx(share, abs=CLOSE), (language, seed, broken)


@pytest.mark.parametrize(("language", "seed"), SETS)
def test_clean_data_fires_none(tmp_path, language, seed):
    broken, _ = alarms(tmp_path, None, language, seed)
    assert broken == {}
