"""Figure of log evidences: differences of the methods' estimates from annealed importance sampling."""

from __future__ import annotations

import matplotlib as mpl

from ep_bench.experiments.posteriors.evidence import BACK, THERE
from ep_bench.experiments.record import ExperimentResults, uses
from ep_bench.plotting.axes import canvas
from ep_bench.plotting.method_style import method_styles
from ep_bench.plotting.page import Picture
from ep_bench.plotting.style import STYLE, finish

CAPTION = (
    "Log evidence by each method, relative to that by annealed importance sampling from the prior to the posterior. "
    "Grey: between the two directions of annealing."
)


def draw(results: ExperimentResults) -> list[Picture]:
    """Return a figure with one panel per posterior, and one line per method."""
    places = list(dict.fromkeys((row["network"], row["dataset"]) for row in results.summary))
    methods = [name for name in dict.fromkeys(row["method"] for row in results.summary) if name not in {THERE, BACK}]
    styles = method_styles(methods, uses(results.options))
    with mpl.rc_context(STYLE):
        figure, axes = canvas(len(places), methods, width=1.6)
        for (network, dataset), ax in zip(places, axes, strict=True):
            rows = {
                row["method"]: row for row in results.summary if (row["network"], row["dataset"]) == (network, dataset)
            }
            ax.axvspan(0.0, float(rows[BACK]["difference"]), color="0.8", linewidth=0)
            ax.axvline(0.0, color="0.5", linewidth=0.6)
            for line, method in enumerate(methods):
                if not rows.get(method, {}).get("difference"):
                    continue
                look, x = styles[method], float(rows[method]["difference"])
                ax.plot(x, line, look.marker, color=look.colour, markersize=4.5)
            ax.set(title=f"{dataset}, {network}", xlabel="nats")
            ax.locator_params(axis="x", nbins=4)
    return [finish(figure, f"evidence-{results.study}", CAPTION)]
