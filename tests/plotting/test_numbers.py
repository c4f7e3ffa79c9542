"""Numbers as texts: minus signs, powers of ten and labels of ticks."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from ep_bench.plotting.axes import log_axis
from ep_bench.plotting.numbers import log_tick_texts, plain_ticks, readable, tick_texts, with_minus


@pytest.mark.parametrize(
    ("places", "texts"),
    [
        ([0.0, 0.5, 1.0], ["0.0", "0.5", "1.0"]),
        ([-18000.0, -12000.0], ["−18000", "−12000"]),
        ([0.00001, 0.00002], ["0.00001", "0.00002"]),
        ([0.0018, 0.00185, 0.0019], ["0.00180", "0.00185", "0.00190"]),
        ([1e-8, 2e-8], ["1×10⁻⁸", "2×10⁻⁸"]),
        ([0.0], ["0"]),
    ],
)
def test_ticks_have_equal_decimals(places, texts):
    assert tick_texts(places) == texts


def test_only_signs_of_numbers_become_minus_signs():
    assert with_minus("DGP-2: -2.46 ± 0.05, 1e-6, 2-3, [-1, -2]") == "DGP-2: −2.46 ± 0.05, 1e-6, 2-3, [−1, −2]"
    assert readable("-9.526e-16") == "−9.526 × 10⁻¹⁶"
    assert log_tick_texts([1e-5, 1.0, 120000.0]) == ["1×10⁻⁵", "1", "120000"]


def test_an_axis_has_no_offset_and_no_label_reaches_the_next_panel():
    figure = Figure(figsize=(3, 2))
    ax = figure.add_axes((0.1, 0.2, 0.5, 0.7))
    ax.plot([0.0, 4e-5], [0, 1])
    plain_ticks(ax.xaxis)
    figure.draw_without_rendering()
    assert ax.xaxis.get_offset_text().get_text() == ""
    texts = [label.get_text() for label in ax.get_xticklabels()]
    assert "0.00002" in texts
    assert "0.00004" not in texts or ax.get_xlim()[1] > 4.1e-5


@pytest.mark.parametrize("high", [1.2, 4.0, 50.0, 1e4])
def test_a_logarithmic_axis_has_a_few_ticks(high):
    ax = Figure().subplots()
    ax.plot([0.0018, 0.0018 * high], [0, 1])
    log_axis(ax)
    assert 2 <= len(ax.get_xticks()) <= 8
