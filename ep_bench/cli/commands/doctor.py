"""``doctor``: what is installed on this machine."""

from __future__ import annotations

import os

import click

from ep_bench.cli.commands.common import echo


@click.command()
def doctor() -> None:
    """Print what is installed on this machine.

    Versions, BLAS and threads, cores, data sets found, and folders.
    """
    import numba
    import scipy.linalg  # noqa: F401 loads BLAS, which is then listed
    from threadpoolctl import threadpool_info

    from ep_bench import data
    from ep_bench.cli.output.text import fields
    from ep_bench.errors import UserError
    from ep_bench.results.provenance import environment

    found = environment()
    cards = [data.card(name) for name in data.names()]
    try:
        present = [card.name for card in cards if data.location(card) != "not fetched"]
    except UserError as error:  # EP_BENCH_DATA is not a folder; the other lines are still useful
        present = [str(error)]
    absent = [card.name for card in cards if card.name not in present]
    blas = [f"{p['internal_api']} {p.get('version') or ''}, {p['num_threads']} threads" for p in threadpool_info()]
    rows = [
        ("python", found["python"]),
        *sorted(found["packages"].items()),
        ("revision", found["revision"] or "not a checkout"),
        ("machine", ", ".join(str(value) for value in found["machine"].values()) + " cores"),
        ("cores usable", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())),
        ("BLAS", "; ".join(blas)),
        ("numba threads", f"{numba.config.NUMBA_NUM_THREADS}; 1 per cell"),
        ("EP_BENCH_DATA", os.environ.get("EP_BENCH_DATA", "not set")),
        ("data cache", str(data.cache_folder())),
        ("data found", ", ".join(present)),
        ("data absent", ", ".join(absent) or "none"),
    ]
    echo([fields(rows)])
