"""Compact SVG has the content of matplotlib's."""

import io
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from ep_bench.plotting.compact_svg import compact, compact_path
from ep_bench.plotting.style import STYLE

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text):
    return ET.fromstring(text)  # noqa: S314, our own text


def positions(path):
    """Return the absolute points of a path, relative or absolute, in the order of drawing."""
    found, here, start = [], np.zeros(2), np.zeros(2)
    for command, text in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        if command in "zZ":
            here = start
            continue
        numbers = np.array([float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", text)]).reshape(-1, 2)
        points = numbers + here if command.islower() else numbers
        found += [(command.upper(), *point) for point in points]
        here = points[-1]
        start = here if command in "mM" else start
    return found


def drawn():
    """Return a figure with lines, markers, an image, clipped areas, turned texts and dashes as matplotlib writes it."""
    figure = Figure(figsize=(4, 3))
    with mpl.rc_context(STYLE):
        left, right = figure.subplots(1, 2)
        x = np.linspace(-3, 3, 60)
        left.plot(x, np.sin(x), "o--", label="a < b & c")
        left.fill_between(x, -x, x, alpha=0.3, hatch="//")
        left.set_ylabel("turned")
        left.legend()
        right.imshow(np.arange(6.0).reshape(2, 3))
        right.add_patch(mpl.patches.Circle((1, 1), 0.4))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("M 1.234567 2 \nL 3.5 -0.25 \n", "M1.23 2l2.27-2.25"),
        ("M 0 0 \nL 0.001 0.002 \nL 0.5 -0.001", "M0 0l0 0l.5 0"),
        ("M 1 1 \nL 2 1 \nL 2 2 \nz\nM 5 5 \nL 6 6 \nz\n", "M1 1l1 0l0 1zm4 4l1 1z"),
        ("M 0 0 \nQ 1 1 2 0 \nC 3 0 3 1 4 1", "M0 0q1 1 2 0c1 0 1 1 2 1"),
        ("M -0.004 100", "M0 100"),
        ("M 1e-07 1e2", "M0 100"),
    ],
)
def test_paths(path, expected):
    assert compact_path(path) == expected


def test_coordinates_of_huge_values_are_limited() -> None:
    assert compact_path("M 0 0 L 1e307 -1e400") == "M0 0l1000000000-1000000000"


def test_errors_of_rounding_do_not_accumulate():
    points = np.cumsum(np.full((5000, 2), 0.004), axis=0)
    path = "M 0 0 " + " ".join(f"L {x:.6f} {y:.6f}" for x, y in points)
    found = np.array([point[1:] for point in positions(compact_path(path))])[1:]
    assert np.abs(found - points).max() <= 0.00501


def test_every_point_of_a_figure_is_in_its_place():
    before, after = drawn(), compact(drawn())
    old, new = ([one.get("d") for one in parsed(text).iter(SVG + "path")] for text in (before, after))
    assert len(old) == len(new) > 10
    for first, second in zip(old, new, strict=True):
        a, b = positions(first), positions(second)
        assert [command for command, *_ in a] == [command for command, *_ in b]
        np.testing.assert_allclose([p[1:] for p in a], [p[1:] for p in b], atol=0.0051)


def test_references_texts_and_styles_remain():
    before, after = parsed(drawn()), parsed(compact(drawn()))
    assert [one.text for one in before.iter(SVG + "text")] == [one.text for one in after.iter(SVG + "text")]
    assert "a < b & c" in {one.text for one in after.iter(SVG + "text")}
    defined = {one.get("id") for one in after.iter()} - {None}
    used = {one.get("href")[1:] for one in after.iter(SVG + "use")}
    used |= {
        name for one in after.iter() for value in one.attrib.values() for name in re.findall(r"url\(#(.+?)\)", value)
    }
    assert used == defined
    assert sum(one.get("transform", "").startswith("rotate") for one in after.iter(SVG + "text")) == 1
    assert after.find(f".//{SVG}image").get("href") == before.find(f".//{SVG}image").get(
        "{http://www.w3.org/1999/xlink}href"
    )
    sheet = after.find(f".//{SVG}style").text
    classes = dict(re.findall(r"\.(c\d+)\{([^}]*)\}", sheet))
    styles = [
        {
            re.sub(r"#\w{11}|#i\d+", "#", one.get("style", "")).replace(": ", ":").replace("; ", ";").replace(", ", ",")
            or classes.get(one.get("class"), "")
        }
        for tree in (before, after)
        for one in tree.iter(SVG + "path")
    ]
    assert styles[: len(styles) // 2] == styles[len(styles) // 2 :]


def test_equal_figures_give_equal_text_of_less_than_half_the_size():
    assert compact(drawn()) == compact(drawn())
    assert len(compact(drawn())) < 0.5 * len(drawn())
