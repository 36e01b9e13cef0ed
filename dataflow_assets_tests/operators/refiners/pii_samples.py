"""Texts with and without personal data, made by rule: 600 of each for every kind of `redact_pii`.

A positive sample is a value in one of its spellings, put into a sentence. A negative sample is what
looks like one: a wrong check digit, an impossible date, a part of a longer number, a decimal, a word.
All values are made from a seed; they stand for nobody.
"""

import ipaddress
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dataflow_assets.text.check_digits import id_card_check_digit, luhn_check_digit

SAMPLES_PER_KIND = 600
_FRAMES = (
    "{}",
    "联系人{}请核对",
    "号码：{}，谢谢。",
    "（{}）",
    "“{}”",
    "请记下{}。",
    "It is {}, is it not?",
    "Write to {}.",
    "[{}]",
    "a: {}\nb",
    "前{}\n后",
    "{}；另有说明",
    # a time, a date or another number beside it
    "{} 9:00-18:00",
    "9:00-18:00 {}",
    "10:00:00 {} 2024-01-15",
    "2024-01-15 {} 10:00",
    "{} 2024年1月5日",
    "42 {}",
    "{} 7",
    "{} 12 times",
    "{} 2024 was",
    "1200 {}, 3.5",
    "{}/42",
    # marks of Markdown, Chinese neighbours
    "**{}**",
    "_{}_",
    "`{}`",
    "| 3 | {} | 4 |",
    "* {}\n* 2",
    "[{}](#a)",
    "李四{}王五",
    "电话：{}转8001",
    "{}-王经理",
)
_WIDE = str.maketrans("0123456789+", "０１２３４５６７８９＋")
Make = Callable[[random.Random], str]


class Sample(NamedTuple):
    """A text and the value in it that is personal data, or None."""

    text: str
    value: str | None


def samples(kind: str) -> list[Sample]:
    """The positive samples of this kind, then the negative ones; the same on every call."""
    positive, negative = _RULES[kind]
    return [*_made(f"{kind} yes", positive, True), *_made(f"{kind} no", negative, False)]


def kinds() -> Sequence[str]:
    """The kinds that have samples."""
    return list(_RULES)


def _made(seed: str, rules: Sequence[Make], is_positive: bool) -> Iterator[Sample]:
    dice = random.Random(seed)
    for number in range(SAMPLES_PER_KIND):
        value = rules[number % len(rules)](dice)
        frame = _FRAMES[number // len(rules) % len(_FRAMES)]
        yield Sample(frame.format(value), value if is_positive else None)


def _digits(dice: random.Random, count: int) -> str:
    return "".join(dice.choices("0123456789", k=count))


def _word(dice: random.Random, count: int) -> str:
    return "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=count))


def _grouped(number: str, sizes: Sequence[int], sign: str) -> str:
    parts, start = [], 0
    for size in sizes:
        parts.append(number[start : start + size])
        start += size
    return sign.join(part for part in parts if part)


def _in_longer_number(make: Make) -> Sequence[Make]:
    """A value with one or several digits, letters or an underscore next to it, or as a decimal."""
    return (
        lambda dice: f"{dice.randint(1, 85)}{make(dice)}",  # 86 is the country code of mobile numbers
        lambda dice: f"{make(dice)}{dice.randint(0, 9)}",
        lambda dice: f"0.{make(dice)}",
        lambda dice: f"{make(dice)}{_word(dice, 2)}",
        lambda dice: f"hash_{make(dice)}",
    )


def _email(dice: random.Random) -> str:
    local = dice.choice(["{a}", "{a}.{b}", "{a}_{n}", "{a}+{b}", "{A}{n}", "{n}", "{a}-{b}", "_{a}"])
    host = dice.choice(
        ["{a}.com", "mail.{a}.co.uk", "{a}-{b}.org", "{n}.com", "{a}.com.cn", "{a}.edu", "{A}.NET"]
    )
    names = {"a": _word(dice, 5), "A": _word(dice, 4).upper(), "b": _word(dice, 3), "n": _digits(dice, 3)}
    return f"{local}@{host}".format(**names)


def _public_ipv4(dice: random.Random) -> str:
    while True:
        address = ipaddress.IPv4Address(dice.randrange(1 << 24, 224 << 24))
        if address.is_global:
            return str(address)


def _public_ipv6(dice: random.Random) -> str:
    prefix = dice.choice([0x2001_4860, 0x2606_4700, 0x2400_3200, 0x2A00_1450])
    host = dice.choice([dice.randrange(1, 1 << 16), dice.randrange(1 << 64), dice.randrange(1 << 96)])
    address = ipaddress.IPv6Address(prefix << 96 | host)
    return dice.choice([str(address), address.exploded, str(address).upper()])


def _id_first_17(dice: random.Random) -> str:
    region = dice.choice(["110101", "310104", "440305", "510107", "650102", "330106"])
    date = f"{dice.randint(1930, 2015)}{dice.randint(1, 12):02}{dice.randint(1, 28):02}"
    return f"{region}{date}{dice.randint(1, 999):03}"


def _id_card(dice: random.Random) -> str:
    first = _id_first_17(dice)
    return first + id_card_check_digit(first)


def _wrong_id_card(dice: random.Random) -> str:
    first = _id_first_17(dice)
    return first + dice.choice([sign for sign in "0123456789X" if sign != id_card_check_digit(first)])


def _id_card_with_date(date: str) -> Make:
    def make(dice: random.Random) -> str:
        first = f"110101{date}{dice.randint(1, 999):03}"
        return first + id_card_check_digit(first)

    return make


def _with_luhn(prefix: str, length: int) -> Make:
    def make(dice: random.Random) -> str:
        first = prefix + _digits(dice, length - len(prefix) - 1)
        return first + luhn_check_digit(first)

    return make


_VISA, _MASTER, _AMEX = _with_luhn("4", 16), _with_luhn("53", 16), _with_luhn("37", 15)
_UNION_16, _UNION_19 = _with_luhn("62", 16), _with_luhn("6222", 19)


def _wrong_card(dice: random.Random) -> str:
    number = _VISA(dice)
    return number[:-1] + str((int(number[-1]) + dice.randint(1, 9)) % 10)


def _mobile(dice: random.Random) -> str:
    return f"1{dice.randint(3, 9)}{_digits(dice, 9)}"


def _north_american(dice: random.Random) -> tuple[str, str, str]:
    return (
        f"{dice.randint(2, 9)}{_digits(dice, 2)}",
        f"{dice.randint(2, 9)}{_digits(dice, 2)}",
        _digits(dice, 4),
    )


def _landline(dice: random.Random) -> str:
    return f"{dice.randint(2, 8)}{_digits(dice, 7)}"


def _plate(dice: random.Random) -> str:
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZ"
    start = dice.choice("京沪粤川苏") + dice.choice(letters)
    return f"{start}{_digits(dice, 1)}{dice.choice(letters)}{_digits(dice, 3)}"


_RULES: dict[str, tuple[Sequence[Make], Sequence[Make]]] = {
    "email": (
        (_email, _email, _email, _email, lambda dice: _email(dice).replace("@", "＠")),
        (
            lambda dice: f"{_word(dice, 5)}@{_word(dice, 4)}",
            lambda dice: f"@{_word(dice, 5)}.{_word(dice, 3)}",
            lambda dice: f"{_word(dice, 5)}@2x.{dice.choice(['png', 'jpg', 'svg'])}",
            lambda dice: f"{_word(dice, 5)} @ {_word(dice, 4)}.com",
            lambda dice: f"{_word(dice, 5)}.{_word(dice, 4)}.com",
            lambda dice: f"{_word(dice, 5)}@{_digits(dice, 2)}.{_digits(dice, 2)}",
            lambda dice: f"{_word(dice, 5)}@{_word(dice, 4)}..com",
            lambda dice: f"@{_word(dice, 6)}",
        ),
    ),
    "ipv4": (
        (
            _public_ipv4,
            _public_ipv4,
            lambda dice: f"{_public_ipv4(dice)}:80",
            lambda dice: f"{_public_ipv4(dice)}/24",
            lambda dice: f"server {_public_ipv4(dice)}",
        ),
        (
            lambda dice: f"10.{dice.randint(0, 255)}.{dice.randint(0, 255)}.{dice.randint(0, 255)}",
            lambda dice: f"192.168.{dice.randint(0, 255)}.{dice.randint(0, 255)}",
            lambda dice: f"127.0.0.{dice.randint(1, 255)}",
            lambda dice: f"203.0.113.{dice.randint(1, 255)}",
            lambda dice: f"{_public_ipv4(dice)}.{dice.randint(1, 9)}",
            lambda dice: f"{dice.randint(1, 9)}.{_public_ipv4(dice)}",
            lambda dice: f"v{_public_ipv4(dice)}",
            lambda dice: f"version {_public_ipv4(dice)}",
            lambda dice: f"{dice.randint(256, 999)}.{dice.randint(1, 9)}.1.1",
            lambda dice: f"{dice.randint(1, 9)}.{dice.randint(1, 99)}.{dice.randint(1, 99)}",
            lambda dice: f"{_public_ipv4(dice)}{_word(dice, 2)}",
        ),
    ),
    "ipv6": (
        (
            _public_ipv6,
            _public_ipv6,
            lambda dice: f"[{_public_ipv6(dice)}]:443",
            lambda dice: f"{_public_ipv6(dice)}/64",
        ),
        (
            lambda dice: f"{dice.randint(10, 23)}:{dice.randint(10, 59)}:{dice.randint(10, 59)}",
            lambda dice: f"{_word(dice, 3)}::{_word(dice, 4)}",
            lambda dice: f"{dice.choice('abcdef')}::{dice.choice('abcdef')}",
            lambda dice: f"fe80::{dice.randint(1, 9999):x}",
            lambda dice: f"fd00::{dice.randint(1, 9999):x}",
            lambda dice: f"2001:db8::{dice.randint(1, 9999):x}",
            lambda dice: ":".join(_digits(dice, 2) for _ in range(6)),
            lambda dice: f"{_public_ipv6(dice)}:{_word(dice, 5)}",
            lambda dice: f"x{_public_ipv6(dice)}",
            lambda dice: "::",
        ),
    ),
    "id_card": (
        (
            _id_card,
            lambda dice: _id_card(dice).lower(),
            lambda dice: _grouped(_id_card(dice), (6, 8, 4), " "),
            lambda dice: _grouped(_id_card(dice), (6, 8, 4), "-"),
            lambda dice: _id_card(dice).translate(_WIDE),
        ),
        (
            _wrong_id_card,
            _id_card_with_date("20001301"),
            _id_card_with_date("19990231"),
            _id_card_with_date("05120101"),
            lambda dice: f"9{_digits(dice, 5)}20240230{_digits(dice, 4)}",
            lambda dice: _id_card(dice)[:17],
            *_in_longer_number(_id_card),
        ),
    ),
    "bank_card": (
        (
            _VISA,
            _MASTER,
            _AMEX,
            _UNION_16,
            _UNION_19,
            lambda dice: _grouped(_VISA(dice), (4, 4, 4, 4), " "),
            lambda dice: _grouped(_UNION_16(dice), (4, 4, 4, 4), "-"),
            lambda dice: _grouped(_UNION_19(dice), (4, 4, 4, 4, 3), " "),
            lambda dice: _grouped(_AMEX(dice), (4, 6, 5), " "),
            lambda dice: _UNION_19(dice).translate(_WIDE),
        ),
        (
            _wrong_card,
            lambda dice: _grouped(_wrong_card(dice), (4, 4, 4, 4), " "),
            _with_luhn("1", 16),
            _with_luhn("99", 19),
            _with_luhn("4", 14),
            lambda dice: f"{dice.randint(1_500_000_000_000, 1_800_000_000_000)}",
            *_in_longer_number(_VISA),
        ),
    ),
    "mobile": (
        (
            _mobile,
            lambda dice: _grouped(_mobile(dice), (3, 4, 4), " "),
            lambda dice: _grouped(_mobile(dice), (3, 4, 4), "-"),
            lambda dice: f"+86{_mobile(dice)}",
            lambda dice: f"+86 {_grouped(_mobile(dice), (3, 4, 4), ' ')}",
            lambda dice: f"0086-{_mobile(dice)}",
            lambda dice: f"（+86）{_mobile(dice)}",
            lambda dice: f"86{_mobile(dice)}",
            lambda dice: _mobile(dice).translate(_WIDE),
        ),
        (
            lambda dice: f"12{_digits(dice, 9)}",
            lambda dice: f"2{_digits(dice, 10)}",
            lambda dice: f"1{dice.randint(3, 9)}{_digits(dice, 8)}",
            lambda dice: f"{dice.randint(1, 9)} {_grouped(_mobile(dice), (3, 4, 4), ' ')} {_digits(dice, 4)}",
            lambda dice: f"{_mobile(dice)}.{_digits(dice, 2)}",
            *_in_longer_number(_mobile),
        ),
    ),
    "phone": (
        (
            lambda dice: f"+44 20 {_digits(dice, 4)} {_digits(dice, 4)}",
            lambda dice: f"+49 (0)30 {_digits(dice, 6)}",
            lambda dice: f"+33-1-{_grouped(_digits(dice, 8), (2, 2, 2, 2), '-')}",
            lambda dice: f"+852 {_digits(dice, 4)} {_digits(dice, 4)}",
            lambda dice: f"+81{dice.randint(1, 9)}{_digits(dice, 8)}",
            lambda dice: "+1 ({}) {}-{}".format(*_north_american(dice)),
            lambda dice: "+1{}{}{}".format(*_north_american(dice)),
            lambda dice: "({}) {}-{}".format(*_north_american(dice)),
            lambda dice: "{}-{}-{}".format(*_north_american(dice)),
            lambda dice: "1-{}-{}-{}".format(*_north_american(dice)),
            lambda dice: "{}.{}.{}".format(*_north_american(dice)),
            lambda dice: f"0044 20 {_digits(dice, 4)} {_digits(dice, 4)}",
            lambda dice: f"010-{_landline(dice)}",
            lambda dice: f"(0571){_landline(dice)}",
            lambda dice: f"（021）{_landline(dice)}",
            lambda dice: f"+86 21 {_landline(dice)}",
        ),
        (
            lambda dice: f"20{_digits(dice, 2)}-{dice.randint(10, 12)}-{dice.randint(10, 28)}",
            lambda dice: f"978-7-{_digits(dice, 3)}-{_digits(dice, 5)}-{_digits(dice, 1)}",
            lambda dice: f"{_digits(dice, 3)}-{_digits(dice, 2)}-{_digits(dice, 4)}",
            lambda dice: f"+{_digits(dice, 3)}",
            lambda dice: f"{dice.randint(2, 9)}+{dice.randint(10**9, 10**10)}",
            lambda dice: f"{_digits(dice, 4)}-{_digits(dice, 4)}",
            lambda dice: f"${dice.randint(200, 999)},{_digits(dice, 3)}.{_digits(dice, 4)}",
            lambda dice: f"{dice.randint(200, 999)} {dice.randint(200, 999)} {dice.randint(1000, 9999)}",
            lambda dice: f"5{'-'.join(_north_american(dice))}",
            lambda dice: f"{'-'.join(_north_american(dice))}{_digits(dice, 1)}",
            lambda dice: f"00{_digits(dice, 6)}",
            lambda dice: f"{dice.randint(2, 9)}010-{_landline(dice)}",
        ),
    ),
    "passport": (
        (
            lambda dice: f"E{_digits(dice, 8)}",
            lambda dice: f"G{_digits(dice, 8)}",
            lambda dice: f"E{dice.choice('ABCDEFGHJK')}{_digits(dice, 7)}",
            lambda dice: f"Passport No. {dice.choice('ABCX')}{_digits(dice, 7)}",
            lambda dice: f"护照号：{_digits(dice, 9)}",
        ),
        (
            lambda dice: f"E{_digits(dice, 7)}",
            lambda dice: f"E{_digits(dice, 9)}",
            lambda dice: f"EI{_digits(dice, 7)}",
            lambda dice: f"{_digits(dice, 9)}",
            lambda dice: f"K{_digits(dice, 8)}",
            lambda dice: f"page{_digits(dice, 8)}",
            lambda dice: f"FE{_digits(dice, 8)}",
            lambda dice: f"E{_digits(dice, 8)}{_word(dice, 1)}",
        ),
    ),
    "licence_plate": (
        (
            _plate,
            lambda dice: f"{_plate(dice)[:2]}·{_plate(dice)[2:]}",
            lambda dice: f"粤B{dice.choice('DF')}{_digits(dice, 5)}",
            lambda dice: f"沪A{_digits(dice, 5)}{dice.choice('DF')}",
            lambda dice: f"粤Z{_digits(dice, 4)}{dice.choice('港澳')}",
        ),
        (
            lambda dice: f"京{_digits(dice, 6)}",
            lambda dice: f"京I{_digits(dice, 5)}",
            lambda dice: f"北A{_digits(dice, 5)}",
            lambda dice: f"京A{_digits(dice, 4)}",
            lambda dice: f"京A{_digits(dice, 8)}",
            lambda dice: f"云A{_word(dice, 5).upper()}".replace("I", "X").replace("O", "X"),
            lambda dice: f"云a{_digits(dice, 5)}",
            lambda dice: f"A{_digits(dice, 5)}",
        ),
    ),
}
