r"""Equations of a DOCX as LaTeX reads them: `x^{2}`, `\frac{a}{b}`; letters and signs stay what they are."""

from collections.abc import Iterator
from xml.etree import ElementTree

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
EQUATION = f"{_M}oMath"
_AROUND = {
    f"{_M}sup": ("^{", "}"),
    f"{_M}sub": ("_{", "}"),
    f"{_M}num": ("\\frac{", "}"),
    f"{_M}den": ("{", "}"),
    f"{_M}rad": ("\\sqrt", ""),
}
_BETWEEN = {f"{_M}m": " \\\\ ", f"{_M}mr": " & ", f"{_M}eqArr": " \\\\ "}
_PARTS = (f"{_M}e", f"{_M}mr")
_Element = ElementTree.Element


def equation_text(equation: _Element) -> str:
    """The equation between dollar signs, empty where there is nothing in it. A nested one costs no stack."""
    found: list[str] = []
    pending: list[_Element | str] = [equation]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            found.append(part)
        elif part.tag.endswith("}t"):
            found.append(part.text or "")
        elif not part.tag.endswith(("Pr", "}del", "}moveFrom")):
            pending.extend(reversed(list(_pieces(part))))
    text = "".join(found)
    return f"${text.strip()}$" if text.strip() else ""


def _pieces(element: _Element) -> Iterator[_Element | str]:
    """What is in an element, with what is written around and between."""
    opening, closing, between = _signs(element)
    yield opening
    is_first = True
    for part in element:
        if part.tag in _PARTS:
            yield "" if is_first else between
            is_first = False
        if element.tag == f"{_M}rad" and part.tag == f"{_M}e":
            yield from ("{", part, "}")
        elif part.tag == f"{_M}deg":
            yield from ("[", part, "]") if part.find(f".//{_M}t") is not None else ()
        else:
            yield part
    yield closing


def _signs(element: _Element) -> tuple[str, str, str]:
    if element.tag == f"{_M}d":
        return _sign(element, "begChr", "("), _sign(element, "endChr", ")"), _sign(element, "sepChr", "|")
    if element.tag == f"{_M}nary":
        return _sign(element, "chr", "∫"), "", ""
    return *_AROUND.get(element.tag, ("", "")), _BETWEEN.get(element.tag, "")


def _sign(element: _Element, name: str, default: str) -> str:
    """The sign that the properties of an element name; without a value it has none."""
    kind = element.tag.removeprefix(_M)
    given = element.find(f"{_M}{kind}Pr/{_M}{name}")
    return default if given is None else given.get(f"{_M}val", "")
