"""Plain English in comments, docstrings, messages and pages.

The rules below are regular expressions for words that this project replaces by standard terms. They apply to Markdown,
YAML and templates, and to the comments, string literals, test names and private names of Python files. Names in
backticks are exempt, since a public name may contain any word.

``python -m tests.test_language`` prints the number of matches per package; with paths as arguments, it prints the
matches in these files and folders.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PATTERNS = (
    "ep_bench/**/*.py",
    "ep_bench/**/*.yaml",
    "ep_bench/**/*.j2",
    "tests/**/*.py",
    "benchmarks/*.py",
    "configs/**/*.yaml",
    "datasets/**/card.yaml",
    "docs/**/*.md",
    "*.md",
    "Makefile",
    "pyproject.toml",
)

# Name of a rule -> expression, replacement. White space is collapsed before the search, so " " also matches a line end.
RULES = {
    "told": (r"\b(tells?|told|telling)\b", "reported, logged, warned"),
    "astray": (r"\bastray\b", "diverged"),
    "taken back": (r"\b(takes?|taken|took|taking) (it |them |this )?back\b", "rejected, rolled back"),
    "anew": (r"\banew\b", "again, re-run"),
    "beside": (r"\bbeside\b", "next to, compared with"),
    "hangs on": (r"\b(hangs?|hung|hanging) (only )?(on|upon)\b", "depends on"),
    "held": (
        (
            r"\b(held|given) (hyperparameters?|precisions|scales|variances)\b"
            r"|\bhyperparameters? (are |is |were )?(held|given)\b"
        ),
        "fixed",
    ),
    "held back": (r"\b(held|holds?|holding) back\b", "held-out, validation (data points)"),
    "held against": (r"\b(holds?|held|holding) (\w+ ){0,4}against\b", "compared with"),
    "law": (r"\blaws?\b", "distribution"),
    "least, most": (
        r"\b(the|its|their|of|a) least\b(?! (squares|once|recently|one))|\b(its|of) most\b|\bthe most of\b",
        "minimum, maximum",
    ),
    "deviation": (r"(?<!standard )(?<!absolute )\bdeviations?\b(?! (from|of the paper))", "standard deviation"),
    "rows": (r"\b(test|training|validation) rows?\b", "data points"),
    "watched": (r"\bwatch(es|ed|ing)?\b", "monitored"),
    "lost": (r"\b(values?|numbers?|rows?) (is|are|was|were) lost\b|\bis lost where\b", "not reproduced, missing"),
    "shares": (r"\bshares? (of|in)\b(?! a\b)", "fraction of, class frequencies"),
    "outside": (
        (
            r"\boutside (methods?|estimators?|regressors?|classifiers?|objects?)\b"
            r"|\b(methods?|classifiers?) from outside\b"
        ),
        "external methods",
    ),
    "stands": (r"\b(stands?|stood)\b|\bstands? for\b", "is, denotes, withstands"),
    "lies": (r"\b(lies?|lying)\b", "is"),
    "the house": (r"\bthe house\b", "the architecture"),
    "room": (r"\brooms?\b", "space, memory; allocate"),
    "lane": (r"\blanes?\b", "supervisor, process"),
    "luggage": (r"\bluggage\b", "payload"),
    "engine room": (r"\bengine rooms?\b", "package, module"),
    "drawer": (r"\bdrawers?\b", "drawing function, folder"),
    "manners": (r"\bmanners\b", "side effects"),
    "says": (r"\b(says|said)\b", "states, reports, returns"),
    "face": (r"(?<!@font-)\bfaces?\b", "interface"),
    "a for per": (
        (
            r"\b(one|values?|numbers?|arrays?|times|steps|draws?|rows|lengthscale|(milli)?seconds|ms|nats|variance)"
            r" an? (epoch|row|input|layer|split|cell|method|weight|unit|step|chain|draw|sweep|worker|fold|side|turn)\b"
        ),
        "per",
    ),
    "inverted": (
        r"(?:^|[.:] )(Watched|Given|Told|Shown|Kept|Drawn|Compared|Counted|Tested|Left out|Not so) (are|is)\b",
        "subject first",
    ),
    "a row more": (r"\b(an?|one) (row|step|sweep|draw|cell|layer|digit|pass|update) more\b", "one more"),
    "but for": (r"\bbut for\b", "except"),
    "else": (r"\b(would|could|might|must) else\b", "otherwise"),
    "answers": (r"\banswers? (to|in)\b", "corresponds to, returns"),
    "nonsense": (r"\bnonsense\b", "implausible values"),
    "upon": (r"\b(upon|whereupon|hence|thither|whence)\b", "on, so"),
}
# Local variables, private functions and arguments. Words in the list are names in nobody's textbook.
NAMES = re.compile(r"_*(told|tells?|beside|anew|astray|rooms?|luggage|manners|least|most|held)", re.IGNORECASE)

# File pattern, rule: public names, titles, quotations and standard terms.
ALLOWED = (
    ("tests/test_language.py", "*"),
    ("ep_bench/numerics/*", "lane"),  # of a vector register
    ("tests/numerics/*", "lane"),
    # The key `beside` of `ranks` in study files.
    ("configs/dgp_2016/dgp.yaml", "beside"),
    ("ep_bench/report/rank_groups.py", "beside"),
    ("ep_bench/spec/models.py", "name"),
    ("ep_bench/spec/comparisons.py", "beside"),
    ("ep_bench/spec/comparisons.py", "name"),
    ("tests/report/test_rank_groups.py", "beside"),
    ("tests/spec/conftest.py", "beside"),
    ("tests/spec/test_read.py", "beside"),
    ("tests/spec/test_read.py", "name"),
    # Columns and quantities of committed results.
    ("ep_bench/experiments/ep_nn_2014/additive_effects/__init__.py", "deviation"),
    ("ep_bench/experiments/gp_t_2011/conflict_posteriors/compute.py", "deviation"),
    ("ep_bench/experiments/gp_t_2011/fixed_predictions/*.py", "deviation"),
    ("ep_bench/experiments/sbc_2018/calibration/compute.py", "deviation"),
    ("tests/experiments/ep_nn_2014/test_additive_effects.py", "deviation"),
    ("tests/methods/test_hmc_calibration.py", "deviation"),
    ("tests/experiments/gp_t_2011/test_conflict_posteriors.py", "deviation"),
    # Labels of cases in committed results.
    ("ep_bench/experiments/sbc_2018/calibration/compute.py", "a for per"),
    # A column of the example CSV file.
    ("tests/data/test_user_csv.py", "room"),
    ("ep_bench/tuning.py", "name"),  # a method of Optuna's studies
)


class Match(NamedTuple):
    """A forbidden word in a file."""

    file: str
    line: int
    text: str
    rule: str
    replacement: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: '{self.text}': write {self.replacement}"


class Block:
    """Adjacent lines of prose, joined by single spaces so that an expression may match across a line end."""

    def __init__(self) -> None:
        self.text = ""
        self._starts: list[int] = []
        self._lines: list[int] = []

    def add(self, line: int, text: str) -> None:
        words = " ".join(text.split())
        if words:
            self._starts.append(len(self.text))
            self._lines.append(line)
            self.text += words + " "

    def line(self, offset: int) -> int:
        return self._lines[bisect_right(self._starts, offset) - 1]

    @classmethod
    def of(cls, text: str, first: int = 1) -> Block:
        block = cls()
        for number, line in enumerate(text.splitlines(), first):
            block.add(number, line)
        return block


def python_blocks(tokens: list[tokenize.TokenInfo]) -> Iterator[Block]:
    """Yield each run of comments, each string literal and each test name of a Python file."""
    comments, last = Block(), -1
    for token in tokens:
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            if line > last + 1:
                yield comments
                comments = Block()
            comments.add(line, token.string.lstrip("#"))
            last = line
        elif token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield Block.of(token.string, line)
        elif token.type == tokenize.NAME and token.string.startswith("test_"):
            yield Block.of(token.string.removeprefix("test_").replace("_", " "), line)
    yield comments


def python_names(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each name that ``NAMES`` matches."""
    for token in tokens:
        if token.type == tokenize.NAME and NAMES.fullmatch(token.string):
            yield token.start[0], token.string


def markdown_blocks(source: str) -> Iterator[Block]:
    """Yield the text without fenced code."""
    block, code = Block(), False
    for number, line in enumerate(source.splitlines(), 1):
        fence = line.lstrip().startswith("```")
        code ^= fence
        if not (code or fence):
            block.add(number, line)
    yield block


def _without_code(text: str) -> str:
    """Blank names in backticks, at the same length."""
    return re.sub(r"(`+)[^`]+?\1", lambda found: "`" * len(found[0]), text)


def is_allowed(file: str, rule: str) -> bool:
    return any(fnmatch(file, pattern) and fnmatch(rule, allowed) for pattern, allowed in ALLOWED)


def check(file: str, source: str) -> list[Match]:
    """Return the matches in a file; its name decides how it is read."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline)) if file.endswith(".py") else []
    if tokens:
        blocks = list(python_blocks(tokens))
    elif file.endswith(".md"):
        blocks = list(markdown_blocks(source))
    else:
        blocks = [Block.of(source)]
    texts = [_without_code(block.text) for block in blocks]
    whole = "\n".join(texts)
    found = [
        Match(file, block.line(match.start()), match[0].strip(), rule, replacement)
        for rule, (expression, replacement) in RULES.items()
        if re.search(expression, whole, re.MULTILINE) and not is_allowed(file, rule)
        for block, text in zip(blocks, texts, strict=True)
        for match in re.finditer(expression, text)
    ]
    if tokens and not is_allowed(file, "name"):
        found += [Match(file, line, name, "name", "a standard term") for line, name in python_names(tokens)]
    return sorted(found, key=lambda match: match.line)


@cache
def files() -> list[str]:
    return sorted({path.relative_to(ROOT).as_posix() for pattern in PATTERNS for path in ROOT.glob(pattern)})


def package(file: str) -> str:
    """Return the package of a file: its folder, at most two levels deep, or the file itself at the top."""
    return "/".join(file.split("/")[:-1][:2]) or file


def check_file(file: str) -> list[Match]:
    return check(file, (ROOT / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted({package(file) for file in files()}))
def test_text_uses_the_terms_of_the_field(name: str) -> None:
    found = [match for file in files() if package(file) == name for match in check_file(file)]
    assert not found, "\n" + "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("file", "source", "lines"),
    [
        ("a.py", '"""Fit again.\n\nThe network is fitted\nanew.\n"""\n', [4]),
        ("a.py", "x = 1  # depends on the seed\n# it hangs\n# on nothing\n", [2]),
        ("a.py", "raise ValueError(f'the table tells {x}')\n", [1]),
        ("a.py", "def test_a_fit_is_told():\n    told = 1\n", [1, 2]),
        ("a.md", "Some text.\n```\nanew\n```\nThe file lies there.\n", [5]),
        ("a.yaml", "a: 1\nb: 2  # one value a row\n", [2]),
    ],
)
def test_a_bad_sentence_is_found_on_its_line(file: str, source: str, lines: list[int]) -> None:
    assert [match.line for match in check(file, source)] == lines


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("a.py", '"""Return the standard\n    deviation; ``told`` is a name."""\nfolder["anew_column"] = held_out\n'),
        ("a.py", "# besides, at least one of the least squares fits understands relies\n"),
        ("a.md", "The `told` option, at most 3 standing orders.\n"),
    ],
)
def test_a_good_sentence_passes(file: str, source: str) -> None:
    assert check(file, source) == []


@pytest.mark.parametrize("rule", RULES)
def test_every_expression_is_valid_and_states_a_replacement(rule: str) -> None:
    expression, replacement = RULES[rule]
    assert not re.search(expression, "")
    assert not re.search(expression, replacement), "the replacement is forbidden too"


def test_exceptions_name_files_that_exist() -> None:
    for pattern, rule in ALLOWED:
        assert any(fnmatch(file, pattern) for file in files()), pattern
        assert rule in {"*", "name", *RULES}, rule


def main(paths: list[str]) -> None:
    """Print the matches in the given files and folders, or the number of matches per package."""
    found = [match for file in files() for match in check_file(file)]
    if paths:
        chosen = tuple(Path(path).resolve().relative_to(ROOT).as_posix() for path in paths)
        folders = tuple(f"{one}/" for one in chosen)
        print("\n".join(str(match) for match in found if f"{match.file}/".startswith(folders)))
        return
    for name, count in Counter(package(match.file) for match in found).most_common():
        rules = Counter(match.rule for match in found if package(match.file) == name)
        print(f"{count:6} {name:32} {', '.join(f'{rule} {number}' for rule, number in rules.most_common(6))}")
    print(f"{len(found):6} in all")


if __name__ == "__main__":
    main(sys.argv[1:])
