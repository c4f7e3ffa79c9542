"""Recalibration of any regression method with points held out of its training data.

``isotonic`` maps the distribution function of a density, ``conformal`` gives quantiles with guaranteed coverage. The
models that predict have not seen the points that calibrate them, and are not fitted again to all points: residuals of
another model would say nothing about their errors. With many points there is one model, fitted without a fraction of
them. With few points, or on request, every fold of a cross-validation calibrates the model of the other folds, and the
predictions of all models are combined.
"""

from typing import TYPE_CHECKING, Any

from ep_bench.recalibration.model import ENOUGH, RECALIBRATIONS, VERSION, RecalibratedModel, held_out_parts

if TYPE_CHECKING:
    from ep_bench.recalibration.regressor import Recalibrated

__all__ = ["ENOUGH", "RECALIBRATIONS", "VERSION", "Recalibrated", "RecalibratedModel", "held_out_parts"]


def __getattr__(name: str) -> Any:
    if name == "Recalibrated":  # its module loads scikit-learn, which a run does not need
        from ep_bench.recalibration.regressor import Recalibrated

        return Recalibrated
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
