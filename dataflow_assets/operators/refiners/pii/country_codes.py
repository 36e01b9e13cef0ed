"""What the phone numbers of a country have in common behind its country code."""

from collections.abc import Mapping
from types import MappingProxyType

_CODES = {
    8: "45 47 65 216 222 223 226 227 228 230 232 235 236 241 253 257 266 267 268 350 356 357 370 371 372 373 "
    "374 382 386 389 502 503 504 505 506 507 509 591 598 599 670 675 686 689 800 808 852 853 961 965 968 973 "
    "974 975 993",
    10: "7 20 30 44 52 53 57 58 60 63 64 81 84 90 91 92 95 98 225 229 234 243 263 353 358 378 685 850 856 "
    "880 881 964 976 977",
    11: "31 54 55 82 86 352 886 888",
    12: "39 62 381 383 870 878 882 883 972",
    13: "43 49",
}
# From the national plans behind ITU E.164, as the metadata of libphonenumber 9.0.43 (Apache 2.0) have them
# for landlines and mobiles. 49 is cut to the 13 digits that E.164 leaves it.
MOST_DIGITS: Mapping[str, int] = MappingProxyType(
    {code: most for most, codes in _CODES.items() for code in codes.split()}
)
"""The most digits of a national number, without its leading 0, by country code; 9 where none is given."""

KEEPS_ZERO = frozenset(("39", "225", "241", "242", "378"))
"""Country codes whose national numbers begin with a 0 that is dialled from abroad too."""
