"""Signs that a DOCX names by their place in a font: Symbol, and the boxes and marks of Wingdings."""

# Adobe's Symbol encoding, from 0x20 and from 0xA0; a blank where the font has a piece of a bracket.
_SYMBOL = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    0xA0: "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑",
    0xF1: "⟩∫",
}
_WINGDINGS = {
    0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x75: "◆", 0xA8: "◻", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
    0xE1: "↑", 0xE2: "↓", 0xE8: "➔", 0xFB: "✗", 0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_FONTS = {
    "symbol": {start + place: sign for start, row in _SYMBOL.items() for place, sign in enumerate(row)},
    "wingdings": _WINGDINGS,
}
_PRIVATE = range(0xE000, 0xF900)
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def symbol(font: str, code: str) -> str:
    """The sign with this hexadecimal code in the font; U+FFFD where neither font nor Unicode tells it."""
    try:
        number = int(code, 16)
        sign = _FONTS.get(font.strip().lower(), {}).get(number & 0xFF if number in _PRIVATE else number)
        text = sign or ("" if number in _PRIVATE else chr(number))
        text.encode()
    except (ValueError, OverflowError, UnicodeError):
        return UNKNOWN
    return text or UNKNOWN
