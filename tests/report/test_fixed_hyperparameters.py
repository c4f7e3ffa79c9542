"""The drawers of approximations at fixed hyperparameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ep_bench.report import build, fixed_hyperparameters
from ep_bench.results import store


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
    figure = fixed_hyperparameters.predictions(arrays, "s").figure
    assert len(figure.axes) == 6
    for panel, (name, i) in zip(figure.axes, [(n, i) for n in fixed_hyperparameters.ROWS for i in (1, 2)], strict=True):
        diagonal, dots = panel.lines
        shape = np.exp if name == "log_density" else np.asarray
        np.testing.assert_array_equal(dots.get_xdata(), shape(arrays[f"{name}_0"]))
        np.testing.assert_array_equal(dots.get_ydata(), shape(arrays[f"{name}_{i}"]))
        np.testing.assert_array_equal(diagonal.get_xdata(), diagonal.get_ydata())
        assert panel.get_xlim() == panel.get_ylim()
        assert panel.get_xlim()[0] < np.nanmin(dots.get_ydata())
        assert np.nanmax(dots.get_ydata()) < panel.get_xlim()[1]


def test_markers_stand_at_the_means_of_what_all_solve() -> None:
    arrays = times()
    figure = fixed_hyperparameters.times(arrays, "s").figure
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


def test_the_table_has_the_published_times(tmp_path: Path) -> None:
    path = tmp_path / "summary.csv"
    path.write_text("dataset,method,relative\na,LA1,1.0\na,EP1,4.0\nb,LA1,1.0\nb,EP1,6.0\n")
    found = fixed_hyperparameters.relative(path)
    assert found is not None
    head, body, caption = found
    assert head == ["method", "a", "b", "mean", "published"]
    assert [entry["text"] for entry in body[1][1:]] == ["4", "6", "5", "5.5"]
    assert "not public" in caption


def test_the_studies_are_drawn(tmp_path: Path) -> None:
    texts = {"fixed_predictions": "method,mean_rms\nEP,0.1\n", "fixed_times": "dataset,method,relative\na,LA1,1.0\n"}
    for name, arrays in (("fixed_predictions", predictions()), ("fixed_times", times())):
        folder = tmp_path / name
        folder.mkdir()
        np.savez(folder / "arrays.npz", **arrays)
        (folder / "summary.csv").write_text(texts[name])
        store.write_lock(folder, {"study": name, "experiment": name, "options": {}, "seed": 0})
        written = {path.name: path for path in build([folder])}
        assert (
            f"{name.replace('_', '-')}-{name}.svg" in written
            or f"{name.replace('_', '-')}-{name.replace('_', '-')}.svg" in written
        )
        if name == "fixed_times":
            assert "published" in written["report.md"].read_text(encoding="utf-8")
