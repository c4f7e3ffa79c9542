"""The card of any data set by its name, built in or from a plugin."""

from __future__ import annotations

from ep_bench.data import plugins
from ep_bench.data.cards import Card, built_in_card, card_names
from ep_bench.errors import UserError


def card(name: str) -> Card:
    """Return the card of a data set; that of a plugin is made from its arrays.

    Raises
    ------
    UserError
        There is no such data set (the message suggests the most similar name), or a plugin returns no valid data set.
    """
    plugin = plugins.find(name) if isinstance(name, str) else None
    if plugin is not None:
        return plugins.load(plugin).card
    if name in card_names():
        return built_in_card(name)
    raise UserError(
        f"there is no data set {name!r}",
        where="data",
        allowed=(*card_names(), *plugins.names()),
        name=name if isinstance(name, str) else None,
    )
