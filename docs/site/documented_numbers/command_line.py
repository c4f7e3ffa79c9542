"""Tables of the page of the command line."""

from __future__ import annotations

from ep_bench.cli import cli
from ep_bench.cli.commands.common import EXIT_CELLS, EXIT_INTERRUPTED, EXIT_REGRESSION, EXIT_UNREAD, EXIT_USAGE

from .markdown import table


def commands() -> list[str]:
    """Return the commands with the first sentence of their help."""
    helps = {name: (command.help or "").split("\n\n")[0] for name, command in sorted(cli.commands.items())}
    return table(
        ["Command", "Purpose"], [[f"`ep-bench {name}`", " ".join(text.split())] for name, text in helps.items()]
    )


def exit_statuses() -> list[str]:
    """Return the exit statuses of the command line."""
    meanings = {
        0: "done",
        EXIT_REGRESSION: "`check`: a published number is not reproduced; `verify`: a stored number is not reproduced",
        EXIT_USAGE: "invalid input",
        EXIT_CELLS: "some cells are not `ok`, or missing (`status`); `verify`: nothing could be compared",
        EXIT_INTERRUPTED: "interrupted; every finished cell is kept",
        EXIT_UNREAD: "the program that reads the output has exited, such as `head`; `run` computes all cells before",
    }
    return table(["Exit status", "Meaning"], [[str(number), meaning] for number, meaning in meanings.items()])


TABLES = {"commands": commands, "exit-statuses": exit_statuses}
