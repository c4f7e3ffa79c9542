"""``doctor``: what is installed on this machine."""

from __future__ import annotations

import click

from ep_bench.cli.commands.common import echo_lines


@click.command()
def doctor() -> None:
    """Print what is installed on this machine.

    Versions, BLAS and threads, cores, data sets found, and folders.
    """
    from ep_bench.cli.output.machine import doctor_lines

    echo_lines(doctor_lines())
