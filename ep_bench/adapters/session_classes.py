"""Classes of a notebook or script as files that other processes can import.

The file has the source of the class and what it uses: import lines, plain constants, and the source of other classes
and functions of the notebook. Equal sources give equal files, so that stored cells are found again.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import symtable
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ep_bench.adapters.targets import forget
from ep_bench.errors import UserError

_SESSION = "__main__"
_REMEDY = "imports, plain constants, and functions and classes of the notebook; or save the class in a file"


def named(study: Mapping[str, Any], results: Path) -> dict[str, Any]:
    """Return a study whose methods that are classes, or have one as ``use``, name it as text.

    A class of the session is written into the folder of the study. Raises UserError if its source is not known, or if
    it uses what cannot be written.
    """
    methods, name = study.get("methods"), study.get("study")
    if not isinstance(methods, list) or not isinstance(name, str) or Path(name).name != name:
        return dict(study)
    return {**study, "methods": [_entry(entry, results / name) for entry in methods]}


def _entry(entry: Any, folder: Path) -> Any:
    if isinstance(entry, type):
        return {"use": _target(entry, folder)}
    if isinstance(entry, Mapping) and isinstance(entry.get("use"), type):
        return {**entry, "use": _target(entry["use"], folder)}
    return entry


def _target(found: type, folder: Path) -> str:
    """Return the target of a class, ``package.module:Class`` or ``./file.py:Class``."""
    if found.__module__ != _SESSION:
        return f"{_public_module(found)}:{found.__qualname__}"
    path = folder / f"{found.__name__}.py"
    text = source_file(found)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        forget(path)
    return f"{path if path.is_absolute() else f'./{path.as_posix()}'}:{found.__name__}"


def source_file(found: type) -> str:
    """Return the text of a module that defines a class of the session. Raises UserError if there is none."""
    parts: dict[str, str] = {}
    _collect(found, parts, found.__name__)
    imports = sorted(line for line in parts.values() if line.startswith(("import ", "from ")))
    others = [part for part in parts.values() if part not in imports]
    return "\n".join(imports) + "\n\n\n" * bool(imports) + "\n\n\n".join(others) + "\n"


def _collect(found: Any, parts: dict[str, str], user: str) -> None:
    """Add the source of a class or function, after that of everything that it uses, to the parts by name."""
    name, source = found.__name__, _source(found)
    parts[name] = ""  # so that what uses one another ends
    for used in dict.fromkeys(_global_names(source)):
        if used not in parts and not hasattr(builtins, used):
            _add(used, parts, user)
    parts[name] = parts.pop(name) or source


def _add(name: str, parts: dict[str, str], user: str) -> None:
    session = vars(sys.modules[_SESSION])
    if name not in session:
        raise UserError(f"uses the name {name!r}, which is not defined", where=user, allowed=_REMEDY)
    value = session[name]
    is_code = inspect.isclass(value) or inspect.isfunction(value)
    if isinstance(value, ModuleType):
        parts[name] = f"import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
    elif is_code and value.__module__ == _SESSION and value.__name__ == name:
        _collect(value, parts, user)
    elif (line := _import_line(name, value)) or (line := _constant(name, value)):
        parts[name] = line
    else:
        problem = f"uses the name {name!r}, whose value cannot be written into a file"
        raise UserError(problem, where=user, found=type(value).__name__, allowed=_REMEDY)


def _source(found: Any) -> str:
    """Return the source of a class or function at the top level of a cell or script."""
    functions = [found, *(value for value in vars(found).values() if inspect.isfunction(value))]
    code = next(
        (f.__code__ for f in functions if hasattr(f, "__code__") and f.__qualname__.startswith(found.__name__)), None
    )
    text = "".join(linecache.getlines(code.co_filename)) if code is not None else ""
    for node in ast.parse(text).body if text else ():
        if getattr(node, "name", None) == found.__qualname__:
            first = min([node.lineno, *(line.lineno for line in node.decorator_list)])  # type: ignore[attr-defined]
            return "".join(text.splitlines(keepends=True)[first - 1 : node.end_lineno]).rstrip()
    problem = "its source is not known: it is not at the top level of a cell, or has no method of its own"
    raise UserError(problem, where=found.__qualname__, allowed="a class of a cell or of a file")


def _global_names(source: str) -> Iterator[str]:
    """Yield the names that a source uses and does not define itself."""
    waiting = [symtable.symtable(source, "cell", "exec")]
    while waiting:
        table = waiting.pop()
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (
                symbol.is_global() or (table.get_type() == "module" and not symbol.is_assigned())
            ):
                yield symbol.get_name()
        waiting += table.get_children()


def _import_line(name: str, value: Any) -> str:
    """Return the line that imports a class, function or other object of a module; empty if it cannot be imported."""
    module, original = getattr(value, "__module__", None), getattr(value, "__name__", "")
    if not isinstance(module, str) or getattr(sys.modules.get(module), original, None) is not value:
        return ""
    return f"from {_public_module(value)} import {original}" + (f" as {name}" if original != name else "")


def _public_module(value: Any) -> str:
    """Return the module of an object, or the package around private modules that has it too."""
    module: str = value.__module__
    while (parts := module.rpartition("."))[2].startswith("_"):
        if getattr(sys.modules.get(parts[0]), value.__name__, None) is not value:
            break
        module = parts[0]
    return module


def _constant(name: str, value: Any) -> str:
    """Return the line that assigns a number, text, or list of these; empty for any other value."""
    try:
        return f"{name} = {value!r}" if ast.literal_eval(repr(value)) == value else ""
    except (ValueError, SyntaxError):
        return ""
