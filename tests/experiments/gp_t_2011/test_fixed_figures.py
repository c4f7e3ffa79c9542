"""The figures of approximations at fixed hyperparameters."""

from __future__ import annotations

import numpy as np

from ep_bench.experiments.gp_t_2011.fixed_predictions import figure as fixed_predictions
from ep_bench.experiments.gp_t_2011.fixed_times import figure as fixed_times
from ep_bench.experiments.record import ExperimentResults


def predictions() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {"labels": np.array(["MCMC", "LA", "EP"])}
    for i in range(3):
        arrays |= {f"mean_{i}": rng.normal(size=20), f"deviation_{i}": np.exp(rng.normal(size=20))}
        arrays[f"log_density_{i}"] = rng.normal(size=20)
    arrays["mean_2"][:5] = np.nan
    return arrays


def times() -> dict[str, np.ndarray]:
    seconds = np.exp(np.random.default_rng(0).normal(size=(2, 3, 6)))
    seconds[1, 2, 4] = np.nan
    return {"labels": np.array(["LA1", "GA", "EP1"]), "datasets": np.array(["a", "b"]), "seconds": seconds}


def test_each_panel_has_the_method_over_the_reference() -> None:
    arrays = predictions()
    (picture,) = fixed_predictions.draw(ExperimentResults("s", arrays))
    figure = picture.figure
    assert len(figure.axes) == 6
    for panel, (name, i) in zip(figure.axes, [(n, i) for n in fixed_predictions.ROWS for i in (1, 2)], strict=True):
        diagonal, dots = panel.lines
        shape = np.exp if name == "log_density" else np.asarray
        np.testing.assert_array_equal(dots.get_xdata(), shape(arrays[f"{name}_0"]))
        np.testing.assert_array_equal(dots.get_ydata(), shape(arrays[f"{name}_{i}"]))
        np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
        assert panel.get_xlim() == panel.get_ylim()
        assert panel.get_xlim()[0] < np.nanmin(dots.get_ydata())
        assert np.nanmax(dots.get_ydata()) < panel.get_xlim()[1]


def test_markers_are_at_the_means_of_what_all_solve() -> None:
    arrays = times()
    (picture,) = fixed_times.draw(ExperimentResults("s", arrays))
    figure = picture.figure
    panel = figure.axes[1]
    shown = {
        round(float(y)): float(x)
        for line in panel.lines[1:]
        for x, y in zip(*line.get_data(), strict=True)
        if len(line.get_xdata()) == 1
    }
    whole = [0, 1, 2, 3, 5]
    assert shown == {j: arrays["seconds"][1, j, whole].mean() for j in range(3)}
    assert [text.get_text() for text in panel.texts] == ["1"]


def test_the_table_has_the_published_times() -> None:
    times = (("a", "LA1", "1.0"), ("a", "EP1", "4.0"), ("b", "LA1", "1.0"), ("b", "EP1", "6.0"))
    summary = [dict(zip(("dataset", "method", "relative"), row, strict=True)) for row in times]
    (table,) = fixed_times.tables(ExperimentResults("s", {}, summary=summary))
    head, body, caption = table.head, table.rows, table.caption
    assert head == ["method", "a", "b", "mean", "published"]
    assert [entry["text"] for entry in body[1][1:]] == ["4", "6", "5", "5.5"]
    assert "not public" in caption
