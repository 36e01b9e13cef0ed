r"""The kinds of personal data that have a shape: one detector each.

A detector is a pattern and a check of what the pattern found. Texts come with full-width digits
folded (`spans.folded`). Borders are look-arounds and not `\b`, which does not fire between a
Chinese character and a digit: a number inside a longer number, a decimal or an ASCII word is none.
"""

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

from dataflow_assets.operators.refiners.pii.country_codes import KEEPS_ZERO, MOST_DIGITS
from dataflow_assets.text.check_digits import is_id_card, is_luhn

PatternKind = Literal[
    "email", "ipv6", "ipv4", "id_card", "bank_card", "phone", "mobile", "passport", "licence_plate"
]

# Behind the first character: not within a word, a longer number, or behind the point of a decimal. A
# pattern that begins with a set of characters is searched many times faster than one that looks back.
# An underscore with no word on its other side is emphasis of Markdown.
_NO_WORD_BEFORE = "(?<![0-9A-Za-z].)(?<![0-9A-Za-z_]_.)"
_FIRST = rf"{_NO_WORD_BEFORE}(?<![0-9]\..)"
_NO_WORD = "(?!_?[0-9A-Za-z])"
_END = rf"{_NO_WORD}(?!\.[0-9])"
# Beside a number in groups: a hyphen more, a date or a time, a year that stands alone.
_BEHIND_HYPHEN, _HYPHEN_NEXT = re.compile("(?<=[0-9]-)"), re.compile("-[0-9]")
_WHEN = "[0-9]{1,2}(?:[:：][0-9]{2}|[月日号点时])|(?:19|20)[0-9]{2}(?:年|[-/.][0-9]{1,2}[-/.])"
_YEAR = "(?:19|20)[0-9]{2}(?! ?[0-9])"


class Detector(ABC):
    """One kind of personal data.

    `hint` is an RE2 pattern that every text with such data matches: it is searched in whole columns
    at little cost, and only texts that match are looked at closely. `tag` is what stands for the kind.
    """

    kind: ClassVar[PatternKind]
    tag: ClassVar[str]
    hint: ClassVar[str]

    @abstractmethod
    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each finding. Of two that overlap the one that is given first counts."""

    def value(self, found: str) -> str:
        """What two spellings of the same have in common."""
        return "".join(filter(str.isalnum, found)).upper()


class _Shape(Detector):
    """A detector by a pattern, where a test of the digits may have the last word."""

    pattern: ClassVar[re.Pattern[str]]

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """What the pattern finds and `accepts` lets pass."""
        for match in self.pattern.finditer(text):
            if self.accepts(match):
                yield match.span()

    def accepts(self, match: re.Match[str]) -> bool:
        """Whether a finding of the pattern is one."""
        return True


class Email(Detector):
    """ASCII addresses (RFC 5322 without quoted local parts; RFC 1035 lengths).

    The last label has letters only and is no usual ending of a file: `logo@2x.png` is none.
    """

    kind = "email"
    tag = "<EMAIL>"
    hint = "@"
    _local = re.compile(r"[A-Za-z0-9_%+-][A-Za-z0-9._%+'-]{0,63}\Z")
    _domain = re.compile(r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}([A-Za-z]{2,24})(?![A-Za-z0-9])")
    _file = re.compile("png|jpe?g|gif|svg|webp|bmp|ico|css|[jt]s|json|html?|php|pdf|txt", re.IGNORECASE)
    _longest_local = 64

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Goes from one `@` to the next: linear in the text, however long its words are."""
        at, done = text.find("@"), 0
        while at >= 0:
            domain = self._domain.match(text, at)
            if domain and not self._file.fullmatch(domain[1]):
                before = text[max(done, at - self._longest_local) : at]
                local = self._local.search(before)
                name = "" if local is None else local[0]
                if text.startswith("_", domain.end()):  # emphasis of Markdown
                    name = name.lstrip("_")
                if name and not name.endswith("."):
                    yield at - len(name), domain.end()
                    done = domain.end()
            at = text.find("@", max(at + 1, done))

    def value(self, found: str) -> str:
        """In lower case."""
        return found.lower()


class IPv4(_Shape):
    """Dotted quads that `ipaddress` takes; no version numbers, no part of a longer dotted number."""

    kind = "ipv4"
    tag = "<IP>"
    hint = r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]"
    pattern = re.compile(rf"[0-9]{_FIRST}[0-9]{{0,2}}(?:\.[0-9]{{1,3}}){{3}}{_END}")
    _numbered = re.compile(
        r"(?:(?<![a-z])(?:version|release|build|ver\.?)|版本号?|第|§)[ :：]{0,2}\Z", re.IGNORECASE
    )

    def __init__(self, public_only: bool = True) -> None:
        self._public_only = public_only

    def accepts(self, match: re.Match[str]) -> bool:
        """By `ipaddress`, and by the word before."""
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            return False
        if self._numbered.search(match.string, max(0, match.start() - 12), match.start()):
            return False
        return address.is_global and not address.is_multicast if self._public_only else True

    def value(self, found: str) -> str:
        """The address itself."""
        return found


class IPv6(_Shape):
    """Addresses that `ipaddress` takes: of 2000::/3 where only public ones count (RFC 4291)."""

    kind = "ipv6"
    tag = "<IP>"
    hint = "(?:[0-9A-Fa-f]{1,4}:){7}|[0-9A-Fa-f]::|::[0-9A-Fa-f]"
    pattern = re.compile(
        r"(?<![0-9A-Za-z:.])(?<![0-9A-Za-z_]_)(?:[0-9A-Fa-f]{1,4}(?=:)|(?=::))"
        rf"(?::[0-9A-Fa-f]{{0,4}}){{2,7}}(?::|(?:(?<=:)[0-9]{{1,3}}(?:\.[0-9]{{1,3}}){{3}}))?(?!:){_END}"
    )
    _unicast = ipaddress.IPv6Network("2000::/3")
    _inner = tuple(map(ipaddress.IPv6Network, ("fc00::/7", "fe80::/10", "::1/128")))

    def __init__(self, public_only: bool = True) -> None:
        self._public_only = public_only

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """A colon that ends a sentence is no part of the address."""
        for match in self.pattern.finditer(text):
            end = match.end() - (match[0].endswith(":") and not match[0].endswith("::"))
            if self._is_wanted(text[match.start() : end]):
                yield match.start(), end

    def _is_wanted(self, found: str) -> bool:
        try:
            address = ipaddress.IPv6Address(found)
        except ValueError:
            return False
        if address in self._unicast:
            return address.is_global or not self._public_only
        return not self._public_only and any(address in network for network in self._inner)

    def value(self, found: str) -> str:
        """The canonical form."""
        return ipaddress.IPv6Address(found).compressed


class IdCard(_Shape):
    """Chinese identity numbers of 18 characters (GB 11643): region, date and check digit are tested."""

    kind = "id_card"
    tag = "<ID_CARD>"
    hint = "[0-9]{6}[ -]?[0-9]{8}[ -]?[0-9]{3}[0-9Xx]"
    pattern = re.compile(rf"[1-9]{_FIRST}[0-9]{{5}}([ -]?)[0-9]{{8}}\1[0-9]{{3}}[0-9Xx]{_END}")

    def accepts(self, match: re.Match[str]) -> bool:
        """By region, date and check digit."""
        return is_id_card(self.value(match[0]))


_FOUR_FOURS = len("4111 1111 1111 1111")


class BankCard(_Shape):
    """Bank cards: a prefix and length that cards have (ISO/IEC 7812), and a right Luhn digit."""

    kind = "bank_card"
    tag = "<BANK_CARD>"
    hint = "[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}|[0-9]{4}[ -][0-9]{6}[ -][0-9]{4,5}"
    pattern = re.compile(
        rf"[2-9]{_FIRST}(?:[0-9]{{12,18}}|(?<=6)2[0-9]{{4}}[ -][0-9]{{13}}"
        r"|[0-9]{3}(?P<fours>[ -])[0-9]{4}(?:(?P=fours)[0-9]{4}){2}(?P<rest>(?P=fours)[0-9]{1,3}(?![0-9]))?"
        rf"|[0-9]{{3}}(?P<sixes>[ -])[0-9]{{6}}(?P=sixes)[0-9]{{4,5}}){_END}"
    )
    # A fifth group of four, and not what may well stand beside a card.
    _four_before = re.compile(
        r"(?<![0-9A-Za-z])(?<!1[3-9][0-9] [0-9]{4} )(?!(?<![0-9] )(?:19|20)[0-9]{2} )[0-9A-Za-z]{3}[0-9] \Z"
    )
    _four_behind = re.compile(rf" (?!{_WHEN}|{_YEAR})[0-9]{{4}}(?![0-9A-Za-z])")
    _brands = re.compile(
        r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}"
        r"|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"
        r"|(?:6011\d\d|64[4-9]\d{3}|65\d{4})\d{10}|62\d{14,17}|9558\d{15}|(?:60|81)\d{14,17}"
    )

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """By prefix, length and Luhn digit, and by the groups beside one in groups."""
        place = done = 0
        while match := self.pattern.search(text, place):
            place = match.start() + 1
            # What looks like the last group may be a security code or the next word.
            for end in (match.end(), match.start("rest")) if match["rest"] else (match.end(),):
                if not self._goes_on(match, end, done) and self._is_card(text[match.start() : end]):
                    yield match.start(), end
                    place = done = end
                    break

    def _is_card(self, found: str) -> bool:
        number = self.value(found)
        return self._brands.fullmatch(number) is not None and is_luhn(number)

    def _goes_on(self, match: re.Match[str], end: int, done: int) -> bool:
        """Whether the groups are a part of more groups; a card before ends at `done`."""
        text, start = match.string, match.start()
        if "-" in (match["fours"], match["sixes"]):
            return bool(_BEHIND_HYPHEN.match(text, start) or _HYPHEN_NEXT.match(text, end))
        if match["fours"] is None or end - start > _FOUR_FOURS:
            return False
        if start - 1 != done and self._four_before.search(text, max(0, start - 5), start):
            return True
        behind = self._four_behind.match(text, end)
        return behind is not None and not self._is_card(text[end + 1 : end + 1 + _FOUR_FOURS])


_USUAL_MOST_DIGITS = 9


class Phone(_Shape):
    """Phone numbers that say what they are by their form.

    International: `+` and a country code in use (ITU E.164), 9 to 15 digits in all, no more groups than
    the numbers of the country have room for; with 00 for `+` only where groups are set apart. North
    American: area code and exchange of the numbering plan, groups set apart. Chinese: area code,
    hyphen, 7 or 8 digits.
    """

    kind = "phone"
    tag = "<PHONE>"
    hint = (
        "[+]\\(?[1-9][0-9 .()）-]{7}|00[1-9][0-9]{0,2}[ )）-]|[0-9][)）] ?[0-9]"
        "|[0-9][.-][0-9]{3,4}[.-][0-9]{4}|0[1-9][0-9]{1,2}-[2-8]"
    )
    # Those in use, without 1; groups of three digits by their first two.
    _country = (
        r"(?:7|2(?:[07]|1[1-368]|[2-5][0-9]|6[0-9]|9[0179])|3(?:[0-469]|5[0-9]|7[0-8]|8[0-35-79])"
        r"|4(?:[013-9]|2[013])|5(?:[1-8]|0[0-9]|9[0-9])|6(?:[0-6]|7[0-9]|8[0-35-9]|9[0-2])"
        r"|8(?:[1246]|0[08]|5[02356]|8[0-368])|9(?:[0-58]|6[0-8]|7[0-79]|9[2-68]))"
    )
    _area = "[2-9][0-9]{2}"
    _behind_area = rf"[ .-]?{_area}[ .-][0-9]{{4}}(?!-[0-9])"
    _chinese_area = "(?:10|2[0-9]|[3-9][0-9]{2})"
    # On its own, as many texts have no plus.
    _with_plus = re.compile(
        r"[(（+](?=[0-9+(][0-9 .()）-]{7})(?<![0-9A-Za-z+].)(?<![0-9A-Za-z_]_.)(?:"
        rf"(?:(?<=\+)\(?|(?<=[(（])\+(?=[0-9]{{1,3}}[)）]))(?P<code>{_country})[)）]?"
        rf"|(?<=\+)1[ .-]?(?:\({_area}\)|{_area})[ .-]?{_area}[ .-]?[0-9]{{4}}{_END})"
    )
    pattern = re.compile(
        r"[(（0-9](?<![0-9A-Za-z+].)(?=[0-9 .()）-]{9})(?<![0-9A-Za-z_]_.)(?<![0-9][.-].)(?:"
        rf"(?:(?<=0)0(?=[0-9]{{1,3}}[ -])|(?<=[(（])00(?=[0-9]{{1,3}}[)）]))(?P<code>{_country})[)）]?|(?:"
        rf"(?<=0)01[ -](?:\({_area}\)|{_area})[ .-]?{_area}[ .-]?[0-9]{{4}}"
        rf"|(?<=1)[ .-]?\({_area}\){_behind_area}"
        rf"|(?<=\(){_area}\){_behind_area}"
        rf"|(?:(?<=1)[ .-]?[2-9]|(?<=[2-9]))[0-9]{{2}}([.-]){_area}\2[0-9]{{4}}(?!-[0-9])"
        rf"|(?:(?<=[(（])0{_chinese_area}[)）] ?|(?<=0){_chinese_area}-)[2-8]"
        rf"(?:[0-9]{{6,7}}|[0-9]{{2,3}}[ -][0-9]{{4}})(?!-[0-9])){_END})"
    )
    _group = re.compile(rf"(?! (?:{_WHEN}))[ .-]?(?:\((?P<area>[0-9]{{1,5}})\)|(?P<digits>[0-9]{{1,15}}))")
    _00_behind_four = re.compile("(?<=[0-9]{4} )00")
    _is_whole = re.compile(_NO_WORD)
    _international = re.compile(rf"[(（]?(?:\+|00)\(?(1|{_country})")
    _chinese_mobile = re.compile("1[3-9][0-9]{9}")
    _shortest, _longest = 9, 15

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Counts the groups behind a country code; `Mobile` finds the Chinese mobile numbers."""
        ends = set()
        for pattern in (self._with_plus, self.pattern) if "+" in text else (self.pattern,):
            place = 0
            while match := pattern.search(text, place):
                start, end, code = match.start(), match.end(), match["code"]
                place = start + 1
                if code is not None:
                    goes_on = start - 1 not in ends and self._00_behind_four.match(text, start)
                    end = None if goes_on else self._end(text, code, end)
                if end is not None:
                    yield start, end
                    ends.add(end)
                    place = end

    def _end(self, text: str, code: str, place: int) -> int | None:
        """Behind the last whole group for which the numbers of the country have room."""
        most = MOST_DIGITS.get(code, _USUAL_MOST_DIGITS)
        end, found, number, fewest = None, "", "", 0
        while group := self._group.match(text, place):
            digits = group["digits"] or group["area"]
            place, room = group.end(), most + (number or digits).startswith("0")
            if len(number) + len(digits) > room or (number and group["area"]):
                fewest = min(most - 3, 8)
                break
            number += digits
            # No number ends with a single digit.
            if group["digits"] and len(digits) > 1:
                if not self._is_whole.match(text, place):
                    fewest = most - 1
                    break
                end, found = place, number
        national = found.removeprefix("0")
        total = len(code) + len(national)
        if len(national) < fewest or not self._shortest <= total <= self._longest:
            return None
        return None if code == "86" and self._chinese_mobile.fullmatch(national) else end

    def value(self, found: str) -> str:
        """As in E.164: `+`, country code, and the number without the 0 that is dialled within it."""
        if international := self._international.match(found):
            code, national = international[1], super().value(found[international.end() :])
        elif found.startswith(("0", "(0", "（0")):
            code, national = "86", super().value(found)
        else:
            code, national = "1", super().value(found).removeprefix("1")
        return f"+{code}{national if code in KEEPS_ZERO else national.removeprefix('0')}"


class Mobile(_Shape):
    """Chinese mobile numbers: 1, 3 to 9, and 9 more digits; +86 or 0086 before it belongs to it.

    Groups are of 3, 4 and 4 digits, and of any number behind +86 or 0086.
    """

    kind = "mobile"
    tag = "<PHONE>"
    hint = "1[ .-]?[3-9](?:[ .)-]{0,2}[0-9]){9}"
    _any_groups = r"[ .-]?(?:\(0\)[ .-]?|0)?(?:\(1[3-9][0-9]\)|1[ .-]?[3-9][ .-]?[0-9])(?:[ .-]?[0-9]){8}"
    pattern = re.compile(
        rf"[(（+018]{_FIRST}(?:(?:(?<=[(（])(?:\+|00)86[)）]|(?<=\+)86|(?<=0)086){_any_groups}"
        rf"|(?:(?<=[(（])86[)）]|(?<=8)6)[ -]?1[3-9][0-9][ -]?[0-9]{{4}}[ -]?[0-9]{{4}}"
        rf"|(?<=1)[3-9][0-9]{{9}}|(?<=1)[3-9][0-9]([ -]?)[0-9]{{4}}([ -]?)[0-9]{{4}}){_END}"
    )
    # Another number in groups, which is told from a group more.
    _whole = "(?:1[3-9][0-9](?: [0-9]{4}){2}|[0-9]{4}(?: [0-9]{4}){3})(?![0-9])"
    _four_behind = re.compile(rf" (?!{_WHEN}|{_YEAR}|{_whole})[0-9]{{4}}(?![0-9A-Za-z])")
    _figure_behind = re.compile(rf" (?!{_WHEN}|{_whole})[0-9]+(?![0-9A-Za-z])")
    _figure_before = re.compile(r"(?<![0-9/:：-])(?<!1[3-9][0-9] [0-9]{4} )[0-9]{1,9} \Z")

    def accepts(self, match: re.Match[str]) -> bool:
        """Not in a longer chain of hyphens, before a group more of four, or amid a row of figures."""
        separators = (match[1] or "") + (match[2] or "")
        text, start, end = match.string, match.start(), match.end()
        if "-" in separators and (_BEHIND_HYPHEN.match(text, start) or _HYPHEN_NEXT.match(text, end)):
            return False
        if " " not in separators:
            return True
        return not self._four_behind.match(text, end) and not (
            self._figure_behind.match(text, end)
            and self._figure_before.search(text, max(0, start - 10), start)
        )

    def value(self, found: str) -> str:
        """The eleven digits."""
        return super().value(found)[-11:]


class Passport(_Shape):
    """Shapes of passports: Chinese ones as they are, of other countries behind the word passport."""

    kind = "passport"
    tag = "<PASSPORT>"
    hint = "[EeGg][A-Za-z]?[0-9]{7}|(?i:passport|护照)"
    pattern = re.compile(
        rf"[EG]{_FIRST}(?:[0-9]{{8}}|(?<=E)[A-HJ-NP-Z][0-9]{{7}}){_END}"
        r"|(?:(?<=passport )|(?<=passport: )|(?<=passport no\. )|(?<=passport no\.: )|(?<=passport number )"
        r"|(?<=passport number: )|(?<=护照)|(?<=护照号)|(?<=护照号码)|(?<=护照[:：])|(?<=护照号[:：])"
        rf"|(?<=护照号码[:：]))(?:[A-Z]{{1,2}}[0-9]{{6,8}}|[0-9]{{8,9}}){_END}",
        re.IGNORECASE,
    )


class LicencePlate(_Shape):
    """Chinese licence plates (GA 36): province, letter, five characters or six of a new-energy car."""

    kind = "licence_plate"
    tag = "<LICENCE_PLATE>"
    _provinces = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
    _sign = "[A-HJ-NP-Z0-9]"
    hint = f"[{_provinces}][A-HJ-NP-Z][·•‧・. ]?{_sign}{{4}}"
    pattern = re.compile(
        rf"[{_provinces}][A-HJ-NP-Z][·•‧・. ]?(?=.{{0,5}}[0-9])"
        rf"(?:[DF]{_sign}[0-9]{{4}}|[0-9]{{5}}[DF]|{_sign}{{4}}(?:{_sign}|[挂学警港澳领使])){_NO_WORD}"
    )


DETECTORS: dict[PatternKind, type[Detector]] = {
    detector.kind: detector
    for detector in (Email, IPv6, IPv4, IdCard, BankCard, Phone, Mobile, Passport, LicencePlate)
}
"""All detectors. Of two findings that overlap, the one of the kind that comes first here counts."""
