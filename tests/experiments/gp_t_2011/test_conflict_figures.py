"""The figures of two contradicting observations."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ep_bench import experiments
from ep_bench.experiments.gp_t_2011.conflict_evidence.figure import measures as evidence_measures
from ep_bench.experiments.record import ExperimentResults


def figure_of(name: str, arrays: dict[str, np.ndarray]) -> Figure:
    (picture,) = experiments.get(name).show("draw", ExperimentResults("s", arrays))
    return picture.figure


def tilted() -> dict[str, np.ndarray]:
    x = np.linspace(-3.0, 3.0, 25)
    bump = np.exp(-0.5 * np.add.outer((x - 1.0) ** 2, x**2))
    arrays = {
        "first": x,
        "second": x + 1.0,
        "marginal": bump,
        "y": np.array([0.5, 2.0]),
        "fractions": np.array([1.0, 0.5]),
    }
    return arrays | {f"likelihoods_{i}": np.ones((2, 25)) - 0.01 * i * x**2 for i in (0, 1)}


def sweeps(schemes: int = 4) -> dict[str, np.ndarray]:
    arrays = {"labels": np.array([f"scheme {i}" for i in range(schemes)])}
    for i in range(schemes):
        evidence = -20.0 + np.arange(9.0) / 10
        evidence[[2, 5]] = np.nan
        arrays |= {f"log_evidence_{i}": evidence, f"precisions_{i}": np.arange(36.0).reshape(9, 4) - 5.0}
        arrays |= {f"stage_{i}": np.repeat([0, 1], [4, 5]), f"mismatch_{i}": np.ones(9)}
    return arrays


def test_first_value_is_horizontal_and_second_vertical() -> None:
    figure = figure_of("conflict_tilted", tilted())
    assert len(figure.axes) == 4
    for panel in figure.axes:
        vertical, horizontal = panel.lines
        assert vertical.get_xdata() == [0.5, 0.5]
        assert horizontal.get_ydata() == [2.0, 2.0]
    left, right = figure.axes[0], figure.axes[1]
    assert [len(panel.collections) for panel in (left, right)] == [2, 2]
    peak = left.collections[1].get_paths()[-1].vertices.mean(axis=0)
    np.testing.assert_allclose(peak, [1.0, 1.0], atol=0.2)  # maximum at 1 and 0 + 1


def test_every_scheme_has_two_panels_with_its_values() -> None:
    arrays = sweeps(4)
    figure = figure_of("conflict_convergence", arrays)
    drawn = [panel for panel in figure.axes if panel.axison]
    assert len(drawn) == 8
    titled = [panel for panel in drawn if panel.get_title()]
    assert [panel.get_title() for panel in titled] == [f"({letter}) scheme {i}" for i, letter in enumerate("abcd")]
    for panel in titled:
        energy, undefined, border = panel.lines
        np.testing.assert_array_equal(energy.get_ydata(), -arrays["log_evidence_0"])
        assert undefined.get_xdata().tolist() == [3, 6]
        assert border.get_xdata() == [4.5, 4.5]
    below = [panel for panel in drawn if not panel.get_title()]
    for panel in below:
        for j, line in enumerate(panel.lines[:4]):
            np.testing.assert_array_equal(line.get_ydata(), arrays["precisions_0"][:, j])
        assert len({str(line._dash_pattern) for line in panel.lines[:4]}) == 4


# Posteriors


def posteriors_of(methods: int = 3) -> dict[str, np.ndarray]:
    arrays = {"labels": np.array(["MCMC", "EP", "LA"][:methods]), "bands": np.array([False, True, False][:methods])}
    f = np.linspace(-2.0, 2.0, 21)
    for e in (1, 2):
        arrays |= {f"x_{e}": np.array([1.5, 2.5, 0.0, 4.0]), f"y_{e}": np.array([1.0, -1.0, 0.2, 0.1])}
        arrays |= {f"grid_{e}": np.linspace(-5.0, 5.0, 21), f"truth_{e}": np.zeros(21), f"latent_{e}": f}
        for i in range(methods):
            arrays |= {f"mean_{e}_{i}": np.zeros(21), f"std_{e}_{i}": np.ones(21)}
            arrays[f"density_{e}_{i}"] = np.exp(-0.5 * (f * (i + 1)) ** 2)
    return arrays


def test_densities_of_all_methods_but_those_that_failed_are_drawn() -> None:
    arrays = posteriors_of()
    arrays["density_2_2"] = np.full(21, np.nan)
    figure = figure_of("conflict_posteriors", arrays)
    _, _, first, second = figure.axes
    shown = [
        [line.get_label() for line in panel.lines if not line.get_label().startswith("_")] for panel in (first, second)
    ]
    assert shown == [["MCMC", "EP", "LA"], ["MCMC", "EP"]]
    np.testing.assert_array_equal(first.lines[1].get_ydata(), arrays["density_1_1"])
    assert [text.get_text() for text in first.texts] == ["y1", "y2"]


def test_an_unbounded_evidence_does_not_flatten_the_panel() -> None:
    arrays = posteriors_of()
    arrays["density_1_2"] = 50.0 * arrays["density_1_2"]
    lower = figure_of("conflict_posteriors", arrays).axes[2]
    assert lower.get_ylim()[1] < 3.0


# Evidence


def evidence_of() -> dict[str, np.ndarray]:
    lengthscales, magnitudes = np.geomspace(0.5, 2.0, 5), np.geomspace(0.1, 10.0, 4)
    arrays = {"lengthscales": lengthscales, "magnitudes": magnitudes, "fractions": np.array([1.0, 0.5])}
    hill = -20.0 - 10.0 * np.add.outer(np.log(magnitudes) ** 2, 4.0 * np.log(lengthscales) ** 2)
    for e in (1, 2):
        arrays |= {f"annealed_{e}": hill, f"error_{e}": np.full(hill.shape, 0.1)}
        for i in range(2):
            swept = np.ones(hill.shape, dtype=bool)
            swept[0, 1] = False
            arrays |= {f"evidence_{e}_{i}": hill + 0.5, f"swept_{e}_{i}": swept, f"mode_{e}_{i}": np.array([1.0, 1.0])}
    arrays["evidence_2_0"][2, 3] = np.nan
    return arrays


def test_failures_have_markers_and_titles_have_errors() -> None:
    arrays = evidence_of()
    figure = figure_of("conflict_evidence", arrays)
    assert len(figure.axes) == 6
    swept, unsolved, mode = figure.axes[3].lines
    assert (swept.get_xdata().tolist(), swept.get_ydata().tolist()) == (
        [arrays["lengthscales"][1]],
        [arrays["magnitudes"][0]],
    )
    assert unsolved.get_xdata().tolist() == [arrays["lengthscales"][3]]
    assert unsolved.get_ydata().tolist() == [arrays["magnitudes"][2]]
    assert mode.get_xydata().tolist() == [[1.0, 1.0]]
    assert all("mean error 0.5 nats" in panel.get_title() for panel in (figure.axes[0], figure.axes[4]))
    assert len(figure.axes[2].lines) == 2  # both modes are in the panel of annealed importance sampling


def test_failures_are_counted_below_and_above_the_mode_and_by_area() -> None:
    arrays = evidence_of()
    arrays["swept_1_0"][:, 4] = False  # a second area, at the largest lengthscale
    found = evidence_measures(ExperimentResults("s", arrays))
    for words, counts in (("failures below the mode", (1, 1)), ("failures above the mode", (4, 0))):
        assert [found[f"{words}, example {e}"] for e in (1, 2)] == list(counts)
    assert [found[f"separate areas of failures, example {e}"] for e in (1, 2)] == [2, 1]
