"""The check digits of identity numbers and bank cards."""

import re
from datetime import date

_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_ID_CHECK_DIGITS = "10X98765432"
# The first two digits of GB/T 2260: provinces, Taiwan, Hong Kong, Macau; 83 and 91 are in use too.
_REGIONS = re.compile("1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|71|8[1-3]|91")


def id_card_check_digit(first_17: str) -> str:
    """The last character of a Chinese identity number (GB 11643: ISO 7064 MOD 11-2)."""
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, first_17, strict=True))
    return _ID_CHECK_DIGITS[total % 11]


def is_id_card(number: str) -> bool:
    """Whether 18 characters are a Chinese identity number: region, date of birth, check digit."""
    return (
        _REGIONS.fullmatch(number[:2]) is not None
        and "1800" <= number[6:10] < "2100"
        and _is_date(number[6:14])
        and id_card_check_digit(number[:17]) == number[17].upper()
    )


def _is_date(digits: str) -> bool:
    try:
        date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return False
    return True


def luhn_check_digit(digits: str) -> str:
    """The digit that makes a number valid by Luhn (ISO/IEC 7812-1)."""
    doubled = (2 * int(digit) for digit in digits[::-2])
    total = sum(number - 9 if number > 9 else number for number in doubled)
    total += sum(map(int, digits[-2::-2]))
    return str(-total % 10)


def is_luhn(number: str) -> bool:
    """Whether the last digit is the check digit of the others."""
    return luhn_check_digit(number[:-1]) == number[-1]
