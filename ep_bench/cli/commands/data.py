"""``data``: the data sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from ep_bench.cli.commands.common import EXIT_USAGE, echo

if TYPE_CHECKING:
    from rich.table import Table

    from ep_bench.cli.output.text import Columns
    from ep_bench.data.cards import Card

_SHORT = 30  # characters; a list with longer items has one line per item


@click.group()
def data() -> None:
    """List, show, fetch and verify data sets."""


@data.command("list")
def data_list() -> None:
    """List the data sets and where they are found on this machine."""
    from ep_bench import data as package

    echo([dataset_table([package.card(name) for name in package.names()])])


@data.command("show")
@click.argument("name")
def data_show(name: str) -> None:
    """Show the card of a data set: source, licence, citation, peculiarities, checksum."""
    echo([card_fields(name)])


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
    echo(str(item) for item in package.fetch(wanted, progress=not quiet))


@data.command("verify")
@click.argument("names", nargs=-1)
def data_verify(names: tuple[str, ...]) -> int:
    """Compare the data on this machine with their checksums. Exits with status 2 if one differs."""
    from ep_bench import data as package

    found = package.verify(list(names) or list(package.names()))
    echo(f"{name:<17} {state:<9} {detail}" for name, state, detail in found)

    missing = [name for name, state, _ in found if state == "missing"]
    wrong = any(name in names or package.card(name).sha256 is not None for name in missing)
    return EXIT_USAGE if wrong or "changed" in {state for _, state, _ in found} else 0


@data.command("check")
@click.argument("file")
@click.option("--target", required=True, metavar="COLUMN", help="Column to predict.")
@click.option("--task", type=click.Choice(["regression", "classification"]), default="regression", show_default=True)
def data_check(file: str, target: str, task: Any) -> int:
    """Print the columns of a CSV file, and the data entry of a study for it. Exits with status 2 if faults remain.

    Inputs that give the target away are printed as leaks. The entry has a choice for missing values, categories and
    dates. It drops a text that differs in every row, such as an identifier, and rows without a target.
    """
    from ep_bench import data as package
    from ep_bench.cli.output.text import Columns, error_items
    from ep_bench.errors import joined

    found = package.check_file(file, target, task)
    echo([Columns(found.columns, drop=[]), f"{found.rows} rows, {found.repeated} of them repeat an earlier one"])
    echo(f"leak: {text}" for text in found.leaks)
    echo(["datasets:", f"  - {found.entry}"])
    if not found.faults:
        return 0
    echo(error_items(joined(found.faults)), err=True)
    return EXIT_USAGE


def dataset_table(cards: Iterable[Card]) -> Columns:
    """Return one row per data set."""
    from ep_bench import data as package
    from ep_bench.cli.output.text import Columns

    rows: list[tuple[str, ...]] = [("name", "points", "inputs", "classes", "splits", "masks", "where", "title")]
    for card in cards:
        numbers = (str(card.n), str(card.d), str(len(card.classes) or ""), str(card.n_splits))
        rows.append((card.name, *numbers, " ".join(card.masks), package.location(card), card.title))
    return Columns(rows, drop=["title"])


def card_fields(name: str) -> Table:
    """Return the card of a data set, one field per row."""
    from ep_bench import data as package
    from ep_bench.cli.output.text import fields

    card = package.card(name).model_dump(mode="json")
    return fields([(key, _text(value)) for key, value in card.items() if value not in (None, [], {}, "")])


def _text(value: Any) -> str:
    """Return a value of a card, mappings as lists; a list with long items has one line per item."""
    if isinstance(value, dict):
        value = [f"{key}: {each}" for key, each in value.items()]
    if not isinstance(value, list):
        return str(value)
    items = list(map(str, value))
    return ("\n" if max(map(len, items)) > _SHORT else ", ").join(items)
