"""Compact SVG: the text that matplotlib writes, in about a third of its size, with the same appearance.

Coordinates are rounded to PRECISION points and written relative to the previous one. Metadata, line breaks, unused
identifiers and groups without attributes are omitted. Repeated styles become classes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree as ET

PRECISION = 0.01  # points; 0.014 pixels on a screen
FAR = 1e9  # largest coordinate; values near the largest number give infinite ones
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_HREF = f"{{{_XLINK}}}href"
_POSITIONS = ("x", "y", "width", "height")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_UNTURNED = re.compile(r"rotate\(-?0(?: [-\d. ]+)?\)")


def compact(svg: str) -> str:
    """Return an SVG text of matplotlib in compact form. Equal texts give equal results."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(svg)  # noqa: S314, our own text
    for metadata in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(metadata)
    _shorten_identifiers(root)
    for element in root.iter():
        _shorten_attributes(element)
    _styles_to_classes(root)
    _unwrap_groups(root)
    return ET.tostring(root, encoding="unicode", short_empty_elements=True) + "\n"


def compact_path(path: str) -> str:
    """Return the ``d`` attribute of a path with rounded relative coordinates.

    Positions are rounded before their differences are taken, so that errors do not accumulate.
    """
    pieces: list[str] = []
    here = start = (0, 0)
    for command, *numbers in _commands(path):
        if command == "z":
            pieces.append("z")
            here = start
            continue
        steps = [round(max(-FAR, min(FAR, float(number))) / PRECISION) for number in numbers]
        pieces.append(command.lower() + _joined([step - here[i % 2] for i, step in enumerate(steps)]))
        here = (steps[-2], steps[-1])
        start = here if command == "M" else start
    return "M" + "".join(pieces)[1:]


def _commands(path: str) -> Iterator[list[str]]:
    """Yield the commands of an absolute path, each with its numbers."""
    for command, numbers in re.findall(r"([MLQCz])([^MLQCz]*)", path):
        yield [command, *numbers.split()]


def _joined(hundredths: list[int]) -> str:
    """Return integers in units of PRECISION as decimal numbers; a minus sign needs no separator."""
    return " ".join(_decimal(value * PRECISION) for value in hundredths).replace(" -", "-")


def _decimal(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return {"-0": "0", "": "0"}.get(text, re.sub(r"^(-?)0\.", r"\1.", text))


def _shorten_identifiers(root: ET.Element) -> None:
    """Replace identifiers that are used by short ones, in the order of their definition; remove all others."""
    used = {element.get(_HREF, "").removeprefix("#") for element in root.iter()}
    used |= {name for element in root.iter() for value in element.attrib.values() for name in _REFERENCE.findall(value)}
    names: dict[str, str] = {}
    for element in root.iter():
        if (identifier := element.attrib.pop("id", None)) in used and identifier is not None:
            element.set("id", names.setdefault(identifier, f"i{len(names)}"))
    for element in root.iter():
        for key, value in element.attrib.items():
            element.set(key, _REFERENCE.sub(lambda found: f"url(#{names[found[1]]})", value))
        if (target := element.attrib.pop(_HREF, None)) is not None:  # images have their data here
            element.set("href", f"#{names[target[1:]]}" if target.startswith("#") else target)


def _shorten_attributes(element: ET.Element) -> None:
    attributes = element.attrib
    if element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None
    if "d" in attributes:
        attributes["d"] = compact_path(attributes["d"])
    for key in _POSITIONS:
        if key in attributes:
            attributes[key] = _NUMBER.sub(lambda found: _decimal(float(found[0])), attributes[key])
    if _UNTURNED.fullmatch(attributes.get("transform", "").strip()):
        del attributes["transform"]
    if "style" in attributes:
        attributes["style"] = re.sub(r"([:;,]) ", r"\1", attributes["style"])


def _styles_to_classes(root: ET.Element) -> None:
    """Define a class for each style that occurs more than once."""
    counts = Counter(element.attrib["style"] for element in root.iter() if "style" in element.attrib)
    classes = {style: f"c{i}" for i, style in enumerate(style for style, count in counts.items() if count > 1)}
    for element in root.iter():
        if element.get("style") in classes:
            element.set("class", classes[element.attrib.pop("style")])
    sheet = root.find(f".//{{{_SVG}}}style")
    if sheet is not None:
        sheet.text = (sheet.text or "") + "".join(f".{name}{{{style}}}" for style, name in classes.items())


def _unwrap_groups(element: ET.Element) -> None:
    """Replace groups without attributes by their content."""
    children: list[ET.Element] = []
    for child in element:
        _unwrap_groups(child)
        children += list(child) if child.tag == f"{{{_SVG}}}g" and not child.attrib else [child]
    element[:] = children
