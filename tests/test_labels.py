"""A label means one configuration in all shipped studies, apart from those of earlier studies."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"

# Labels of committed results that mean several configurations. No other one may be added.
KNOWN = {
    "BB-alpha 0.5", "Dropout-1", "PBP-1", "VI-1", "VI-1 heteroscedastic", "VI-2", "HMC-1", "HMC-1 (b = 2)", "DGP-2",
    "Ensemble", "GP", "NN-EP-ARD", "NN-EP-LA", "SGPR-100", "SGPR-50", "GP-ARD", "NN-MC", "SM",
}  # fmt: skip


def configurations() -> dict[str, list[str]]:
    """Return the different configurations of each label in the committed results."""
    found = defaultdict(list)
    for lock in sorted(RESULTS.glob("*/study.lock.json")):
        for label, entry in json.loads(lock.read_text(encoding="utf-8")).get("methods", {}).items():
            one = [entry["use"], entry["options"], entry.get("tune"), entry.get("recalibrate")]
            if one not in found[label]:  # 1 and 1.0 are equal
                found[label].append(one)
    return found


def test_a_new_label_means_one_configuration() -> None:
    several = {label for label, found in configurations().items() if len(found) > 1}
    assert several <= KNOWN
