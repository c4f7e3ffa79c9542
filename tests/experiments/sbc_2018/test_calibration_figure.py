"""The figure of rank histograms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from ep_bench.experiments.record import ExperimentResults
from ep_bench.experiments.sbc_2018.calibration.figure import BAND, band, draw


def made() -> dict[str, np.ndarray]:
    ranks = np.random.default_rng(0).integers(10, size=(2, 100, 3))
    ranks[1, :, 2] = 9
    labels = np.array(["one, plain", "two"])
    return {"ranks": ranks, "labels": labels, "quantities": np.array(["f", "noise", "joint"]), "draws": np.array(9)}


def test_a_panel_shows_the_counts_over_the_band() -> None:
    arrays = made()
    (picture,) = draw(ExperimentResults("s", arrays))
    figure = picture.figure
    assert len(figure.axes) == 6
    for panel, (case, quantity) in zip(figure.axes, np.ndindex(2, 3), strict=True):
        span, *bars = panel.patches
        counts = np.bincount(arrays["ranks"][case, :, quantity], minlength=10)
        assert [bar.get_height() for bar in bars] == counts.tolist()
        assert (span.get_y(), span.get_y() + span.get_height()) == pytest.approx(band(100, 9))
    assert [panel.get_title() for panel in figure.axes[:3]] == ["f", "noise", "joint"]


@pytest.mark.parametrize(("replications", "draws"), [(100, 9), (300, 19), (1000, 4)])
def test_a_bar_is_in_the_band_with_its_probability(replications: int, draws: int) -> None:
    low, high = band(replications, draws)
    counts = np.arange(replications + 1)
    inside = binom.pmf(counts, replications, 1 / (draws + 1))[(counts >= low) & (counts <= high)].sum()
    assert BAND <= inside < BAND + 0.01
