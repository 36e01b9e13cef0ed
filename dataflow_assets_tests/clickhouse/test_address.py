import pytest

from dataflow_assets.clickhouse.address import Address
from dataflow_assets.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "shown", "password"),
    [
        ("clickhouse://h/t", "clickhouse://default@h:8123/default/t", "from-env"),
        ("clickhouse://h/d/t?secure=true", "clickhouse://default@h:8443/d/t", "from-env"),
        ("clickhouse://u:p%40%2F%3A@h:9/d/t", "clickhouse://u@h:9/d/t", "p@/:"),
        ("clickhouse://u:@[::1]:9/d/t%20x", "clickhouse://u@[::1]:9/d/t x", ""),
    ],
)
def test_an_address_shows_no_password(url: str, shown: str, password: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLICKHOUSE_PASSWORD", "from-env")
    address = Address.of(url)
    assert (str(address), address.password) == (shown, password)
    assert not password or password not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "clickhouse://u:hunter2@h",
        "clickhouse://u:hunter2@h/",
        "clickhouse://u:hunter2@h:port/d/t",
        "clickhouse://u:hunter2@h:99999/d/t",
        "clickhouse://u:hunter2@/d/t",
        "clickhouse://u:hunter2@h/d/t/more",
        "clickhouse://u:hunter2@h/d/t?secure=maybe",
        "clickhouse://u:hunter2@h/d/t?password=hunter2",
        "clickhouse://u:hunter2@[h/d/t",
        "clickhouse://u:hunter2@h/d/t#x",
    ],
)
def test_a_wrong_address_is_refused_without_its_password(url: str):
    with pytest.raises(ConfigError, match=r"clickhouse://\[user\[:password\]@\]host") as error:
        Address.of(url)
    assert "hunter2" not in str(error.value)
