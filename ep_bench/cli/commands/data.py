"""``data``: the data sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ep_bench.cli.commands.common import EXIT_USAGE, echo_lines

if TYPE_CHECKING:
    from ep_bench.data.cards import Card


@click.group()
def data() -> None:
    """List, show, fetch and verify data sets."""


@data.command("list")
def data_list() -> None:
    """List the data sets and where they are found on this machine."""
    from ep_bench import data as package

    echo_lines(dataset_lines([package.card(name) for name in package.names()]))


@data.command("show")
@click.argument("name")
def data_show(name: str) -> None:
    """Show the card of a data set: source, licence, citation, peculiarities, checksum."""
    echo_lines(card_lines(name))


@data.command("fetch")
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Fetch every data set that has a source.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def data_fetch(names: tuple[str, ...], everything: bool, quiet: bool) -> None:
    """Download data sets into the cache folder and verify their checksums."""
    from ep_bench import data as package

    if not names and not everything:
        raise click.UsageError("name the data sets to fetch, or use --all")
    wanted = [name for name in package.names() if not package.card(name).embedded] if everything else list(names)
    echo_lines(str(item) for item in package.fetch(wanted, progress=not quiet))


@data.command("verify")
@click.argument("names", nargs=-1)
def data_verify(names: tuple[str, ...]) -> int:
    """Compare the data on this machine with their cards. Exits with status 2 if one differs.

    Compares checksums, numbers of data points and inputs, and the target column.
    """
    from ep_bench import data as package

    found = package.verify(list(names) or list(package.names()))
    echo_lines(f"{name:<17} {state:<9} {detail}" for name, state, detail in found)

    def is_wrong(name: str, state: str) -> bool:
        return state in {"changed", "card"} or (
            state == "missing" and (name in names or package.card(name).sha256 is not None)
        )

    return EXIT_USAGE if any(is_wrong(name, state) for name, state, _ in found) else 0


def dataset_lines(cards: Iterable[Card]) -> list[str]:
    """Return one line per data set: those of the cards, and those of plugins.

    A terminal that is too narrow for the titles gets only the remarks on plugins.
    """
    from ep_bench import data as package
    from ep_bench import plugins
    from ep_bench.cli.output.text import columns, terminal_width
    from ep_bench.data.cards import card_names

    rows = [("name", "points", "inputs", "classes", "splits", "where", "")]
    for card in cards:
        classes = str(len(card.classes) or "")
        rows.append(
            (card.name, str(card.n), str(card.d), classes, str(card.n_splits), package.location(card), card.title)
        )
    # Plugins are not loaded, because a broken or slow one would affect the whole list.
    rows += [(name, "", "", "", "", "plugin", text) for name, text in plugins.described(plugins.DATASETS, card_names())]
    lines = columns(rows)
    if max(map(len, lines)) <= terminal_width():
        return lines
    return columns([(*row[:-1], row[-1] if row[-2] == "plugin" else "") for row in rows])


def card_lines(name: str) -> list[str]:
    """Return the card of a data set, one field per line."""
    from ep_bench import data as package
    from ep_bench.cli.output.text import field_lines

    fields = package.card(name).model_dump(mode="json")
    return [
        line for key, value in fields.items() if value not in (None, [], {}, "") for line in field_lines(key, value)
    ]
