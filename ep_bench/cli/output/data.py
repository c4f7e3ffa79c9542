"""Output of ``data list`` and ``data show``."""

from __future__ import annotations

from collections.abc import Iterable

from ep_bench import data, plugins
from ep_bench.cli.output.plugins import plugin_rows
from ep_bench.cli.output.text import columns, field_lines, terminal_width
from ep_bench.data.cards import Card, card_names


def dataset_lines(cards: Iterable[Card]) -> list[str]:
    """Return one line per data set: those of the cards, and those of plugins.

    A terminal that is too narrow for the titles gets only the remarks on plugins.
    """
    rows = [("name", "points", "inputs", "classes", "splits", "where", "")]
    for card in cards:
        classes = str(len(card.classes) or "")
        rows.append((card.name, str(card.n), str(card.d), classes, str(card.n_splits), data.location(card), card.title))
    # Plugins are not loaded, because a broken or slow one would affect the whole list.
    rows += [(name, "", "", "", "", "plugin", text) for name, text in plugin_rows(plugins.DATASETS, card_names())]
    lines = columns(rows)
    if max(map(len, lines)) <= terminal_width():
        return lines
    return columns([(*row[:-1], row[-1] if row[-2] == "plugin" else "") for row in rows])


def card_lines(name: str) -> list[str]:
    """Return the card of a data set, one field per line."""
    fields = data.card(name).model_dump(mode="json")
    return [
        line for key, value in fields.items() if value not in (None, [], {}, "") for line in field_lines(key, value)
    ]
