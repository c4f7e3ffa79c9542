"""Families of methods, by their name in the registry: filters of the report are by family."""

from __future__ import annotations

NETWORKS, PROCESSES, DEEP, OTHER = "networks", "Gaussian processes", "deep Gaussian processes", "other methods"
FAMILIES = (NETWORKS, PROCESSES, DEEP, OTHER)
_MEMBERS = {
    NETWORKS: "pbp bp vi_graves vi dropout bb_alpha hmc sgld laplace ensemble ep_nn",
    PROCESSES: "gp sgp gp_t",
    DEEP: "dgp_ep",
}
_FAMILY = {name: family for family, names in _MEMBERS.items() for name in names.split()}


def family_of(name: str) -> str:
    """Return the family of a method of the registry; baselines and external methods are other methods."""
    return _FAMILY.get(name, OTHER)
