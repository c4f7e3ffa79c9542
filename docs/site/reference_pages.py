"""Pages of the documentation site that are generated from the code: options, study keys, data cards, exit statuses."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ep_bench import estimator, experiments, methods
from ep_bench import options as option_descriptions
from ep_bench.data.cards import Card, card, card_names
from ep_bench.spec.schema import study_schema


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table; vertical bars in entries are escaped."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(entry.replace("|", "\\|") for entry in line) + " |" for line in lines) + "\n"


# Options


def option_table(config: Any, common_options: Mapping[str, Any] | None = None) -> str:
    """Return the table of the options of a pydantic model."""
    rows = [[f"`{one.name}`", f"`{one.default}`" if one.default else "required", one.takes, one.description]
            for one in option_descriptions.table(config)]  # fmt: skip
    rows += [[f"`{key}`", f"`{str(value).lower()}`", "true or false", COMMON.get(key, "")]
             for key, value in (common_options or {}).items()]  # fmt: skip
    return table(["Option", "Default", "Takes", "Description, source of the default"], rows)


COMMON = {"standardize": "standardise inputs and target by the training data; predictions are in original units"}


def options_page() -> str:
    """Return the page of the options of all methods and experiments."""
    return "\n".join(_options())


def _options() -> Iterator[str]:
    yield "# Options\n\nThis page is generated from the models that check the options."
    yield "An entry of `methods` in a study may set each of them. `ep-bench methods show NAME` prints the same.\n"
    yield "## Methods\n"
    for name in methods.names():
        yield f"### {name}\n\n{methods.get(name).title}. {_paper(name)}\n"
        yield option_table(methods.get(name).config, estimator.COMMON_OPTIONS)
    yield "## Experiments\n\nAn experiment takes these keys under `options`.\n"
    for name in sorted(experiments.names()):
        yield f"### {name}\n\n{option_table(experiments.options_model(name))}"


def _paper(name: str) -> str:
    return f"Source: {methods.get(name).paper}. [Page of the method](../methods/{PAGES[name]}.md)."


# Methods

DOCS = Path(__file__).parents[1]
PAGES = {
    name: page.stem
    for page in (DOCS / "methods").glob("[a-z]*.md")
    for name in page.read_text("utf-8").partition(":")[0].removeprefix("# ").split(" and ")
}  # of each method, by the names in the heading


def method_reference(name: str) -> str:
    """Return the generated sections of the page of a method: model, deviations in detail, and options."""
    names = [method for method, page in PAGES.items() if page == name]
    parts = []
    for one in names:
        model, deviations = _docstring(one)
        of = f" of {one}" if len(names) > 1 else ""
        parts.append(f"\n\n## Model and equations{of}\n\n{model}\n")
        if deviations:
            parts.append(f"\n## Deviations in detail{of}\n\n" + "\n".join(f"- {each}" for each in deviations) + "\n")
        parts.append(f"\n## Options{of}\n\n{option_table(methods.get(one).config, estimator.COMMON_OPTIONS)}")
    return "".join(parts)


def _docstring(name: str) -> tuple[str, list[str]]:
    """Return the text on the model and the deviations from the docstring of the module of a method."""
    module = import_module(f"ep_bench.methods.{name}")
    text = inspect.cleandoc(module.__doc__ or "")
    start = re.search(r"^Deviation: ", text, flags=re.MULTILINE)
    model = text[: start.start()] if start else text
    rest = text[start.start() :] if start else ""
    found = [" ".join(one.split()) for one in rest.split("Deviation: ")[1:]]
    return _with_lists(model.strip()), [one[0].upper() + one[1:] for one in found]


def _with_lists(text: str) -> str:
    """Put indented equations and aligned lists of symbols into code blocks, which Markdown leaves as they are."""
    parts = []
    for block in re.split(r"\n\n", text):
        indented = all(line.startswith("    ") for line in block.splitlines())
        parts.append(f"```text\n{textwrap.dedent(block)}\n```" if indented else _escaped(block))
    return "\n\n".join(parts)


def _escaped(block: str) -> str:
    """Escape characters that Markdown would interpret, outside inline code."""
    parts = re.split(r"(``.*?``)", block, flags=re.DOTALL)
    return "".join(part if i % 2 else re.sub(r"([*_<])", r"\\\1", part) for i, part in enumerate(parts))


# Keys of a study


def schema_page() -> str:
    """Return the page of all keys of a study, from its JSON schema."""
    schema = study_schema()
    parts = [
        "# Keys of a study\n\nThis page is generated from the JSON schema that `ep-bench schema` prints.",
        "[Studies](../studies.md) explains the keys with examples.",
        "[Options](options.md) lists the options of methods and experiments.\n\n## Top level\n",
        _keys(schema),
    ]
    for title, key in (("limits", "limits"), ("compare", "compare")):
        parts.append(f"## {title}\n\n{_keys(schema['properties'][key])}")
    for title, key in (("accept", "accept"), ("ranks", "ranks")):
        parts.append(f"## An entry of {title}\n\n{_keys(schema['properties'][key]['items'])}")
    entry = next(one for one in schema["properties"]["methods"]["items"]["anyOf"] if "properties" in one)
    parts.append(f"## tune, in an entry of methods\n\n{_keys(entry['properties']['tune'])}")
    for one in schema["properties"]["datasets"]["items"]["anyOf"]:
        if "properties" in one:
            kind = "of the package" if "csv" not in one["properties"] else "of your own"
            parts.append(f"## An entry of datasets: data {kind}\n\n{_keys(one)}")
    for one in schema["properties"]["splits"]["anyOf"]:
        if "properties" in one:
            name = one["properties"].get("scheme", {}).get("const", "scheme")
            parts.append(f"## splits: scheme {name}\n\n{_keys(one)}")
    return "\n".join(parts)


def _keys(schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = []
    for key, one in schema.get("properties", {}).items():
        default = "required" if key in required else f"`{json.dumps(one['default'])}`" if "default" in one else ""
        rows.append([f"`{key}`", _type(one), default, str(one.get("description", ""))])
    return table(["Key", "Type", "Default", "Description"], rows)


BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a value in words."""
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        values = schema["enum"]
        return ", ".join(f"`{value}`" for value in values) if len(values) <= 6 else "one of the known names"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    bounds = [f"{words} {schema[key]}" for key, words in BOUNDS.items() if key in schema]
    kind = schema.get("type", "mapping" if "$ref" in schema else "any")
    kind = {"object": "mapping", "array": "list", "integer": "whole number"}.get(kind, kind)
    return " ".join([kind, *bounds])


# Data cards and studies


def data_cards() -> str:
    """Return the page of the cards of all data sets."""
    cards = [card(name) for name in card_names()]
    overview = [[f"[{c.name}](#{c.name})", c.title, c.task, str(c.n), str(c.d), str(c.n_splits)] for c in cards]
    head = ["Name", "Title", "Task", "Data points", "Inputs", "Standard splits"]
    parts = [
        "# Data cards\n\nThis page is generated from `datasets/*/card.yaml`.",
        "The MIT licence covers the code of ep-bench only.",
        "Each data set has its own terms, and for some no licence is known.\n",
        "`ep-bench data show NAME` prints one card. `ep-bench data verify` compares the files with the checksums.\n",
        table(head, overview),
        *(_card(card) for card in cards),
    ]
    return "\n".join(parts)


def _card(card: Card) -> str:
    checksum = f"`{card.sha256}`" if card.sha256 else "not known"
    facts = {
        "Title": card.title, "Task": card.task, "Data points": str(card.n), "Inputs": str(card.d),
        "Target": card.target, "Classes": ", ".join(card.classes.values()), "Standard splits": str(card.n_splits),
        "Source": card.source, "Licence": card.licence, "Citation": card.citation, "SHA-256": checksum,
    }  # fmt: skip
    rows = [[key, _plain(value) if key != "SHA-256" else value] for key, value in facts.items() if value]
    oddities = "".join(f"\n- {_plain(one)}" for one in card.oddities)
    return f"## {card.name}\n\n{table(['Entry', 'Value'], rows)}" + (f"\nOddities:\n{oddities}\n" if oddities else "")


def _plain(text: str) -> str:
    """Return a text in which Markdown has no effect."""
    return re.sub(r"([*_<\[\]`])", r"\\\1", text)


def studies_page(configs: Path) -> str:
    """Return the page of the studies of the package."""
    return "\n".join(_studies(configs))


def _studies(configs: Path) -> Iterator[str]:
    yield "# Studies of the package\n\nThis page is generated from `configs/`."
    yield "`ep-bench run NAME` runs a study by the name of its file. The first comment of each describes it.\n"
    for path in sorted(configs.rglob("*.yaml"), key=lambda path: (path.parent != configs, path)):
        yield f"## {path.stem}\n\n`configs/{path.relative_to(configs).as_posix()}`\n"
        yield f"```yaml\n{path.read_text('utf-8')}```\n"
