"""Data sets: cards, locations of files, loading, users' own files, splits, download and verification."""

from ep_bench.data.cards import Card, card
from ep_bench.data.cards import card_names as names
from ep_bench.data.checking import check_file
from ep_bench.data.embedded import true_function
from ep_bench.data.fetching import Fetched, fetch
from ep_bench.data.locations import cache_folder, data_folder, find_file, location
from ep_bench.data.preprocessing import fit_inputs
from ep_bench.data.reading import describe, load, load_dataset
from ep_bench.data.splits import (
    check_scheme,
    make_split,
    make_splits,
    resolve_scheme,
    split_count,
    standard_split,
    training_points,
)
from ep_bench.data.verification import Verified, verify

__all__ = [
    "Card",
    "Fetched",
    "Verified",
    "cache_folder",
    "card",
    "check_file",
    "check_scheme",
    "data_folder",
    "describe",
    "fetch",
    "find_file",
    "fit_inputs",
    "load",
    "load_dataset",
    "location",
    "make_split",
    "make_splits",
    "names",
    "resolve_scheme",
    "split_count",
    "standard_split",
    "training_points",
    "true_function",
    "verify",
]
