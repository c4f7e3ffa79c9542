"""Run the tutorials of the documentation, and write each as a page with its output.

A tutorial is a Python file in ``docs/tutorials/`` with cells, each of which starts with a line ``# %%``:

- ``# %% [markdown]``: text, as comments;
- ``# %% [console]``: commands, as comments with ``$``; a page shows them with their output;
- ``# %% [file NAME]``: a file, as comments; it is written and shown;
- ``# %%``: Python code; what it prints is shown.

All cells run in one empty folder. ``# results: NAME ...`` in the first line of a file copies committed results into it.
An image whose file the tutorial wrote becomes a part of the page. A command that ends with another exit status than the
one in a trailing comment ``# exit status N`` is an error, and so is an exception.

A page is kept in ``build/`` until its tutorial or the package changes.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
CELL = re.compile(r"^# %%(?: \[(\w+)(?: ([^\]]+))?\])?\n", flags=re.MULTILINE)
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+\.(svg|png))\)")
TYPES = {"svg": "image/svg+xml", "png": "image/png"}


def tutorials(folder: Path, cache: Path) -> dict[str, str]:
    """Return the pages of all tutorials of a folder by their names."""
    scripts = sorted(folder.glob("*.py"))
    package = hashlib.sha256(b"".join(path.read_bytes() for path in sorted((ROOT / "ep_bench").rglob("*.py"))))

    def page(script: Path) -> str:
        key = hashlib.sha256(package.digest() + script.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16]
        kept = cache / "tutorials" / f"{script.stem}-{key}.md"
        if not kept.exists():
            done = subprocess.run([sys.executable, __file__, str(script)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{script} failed:\n{done.stdout}{done.stderr}")
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(done.stdout, encoding="utf-8")
        return kept.read_text(encoding="utf-8")

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((script.stem for script in scripts), pool.map(page, scripts), strict=True))


def run(script: Path) -> str:
    """Return the page of one tutorial. Its cells run in the current folder."""
    text = script.read_text(encoding="utf-8")
    if found := re.match(r"# results: (.+)\n", text):
        for name in found[1].split():
            shutil.copytree(ROOT / "results" / name, Path("results") / name)
    names: dict[str, object] = {"__name__": "__main__"}
    parts = CELL.split(text)[1:]
    cells = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    written = "\n\n".join(_cell(kind, name, body, names) for kind, name, body in cells)
    return f"{IMAGE.sub(_embedded, written)}\n\n*The commands and code of this page ran when the page was built.*\n"


def _cell(kind: str | None, name: str | None, body: str, names: dict[str, object]) -> str:
    """Run a cell, and return its part of the page."""
    if kind is None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(body, "tutorial", "exec"), names)  # noqa: S102
        return _fence("python", body) + (f"\n\n{_fence('text', out.getvalue())}" if out.getvalue().strip() else "")
    plain = re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip("\n") + "\n"
    if kind == "console":
        return _fence("console", "".join(_command(line) for line in plain.splitlines()))
    if kind == "file" and name is not None:
        Path(name).write_text(plain, encoding="utf-8")
        return _fence("python" if name.endswith(".py") else "yaml", plain, name)
    return plain


def _command(line: str) -> str:
    """Run a command, and return it with its output."""
    command, _, status = line.removeprefix("$ ").partition("  # exit status ")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,  # noqa: S602
                          env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}, check=False)  # fmt: skip
    if done.returncode != int(status or 0):
        raise RuntimeError(f"{command}: exit status {done.returncode}\n{done.stdout}")
    return f"$ {command}\n{done.stdout}"


def _fence(language: str, text: str, title: str = "") -> str:
    head = f'{language} title="{title}"' if title else language
    return f"```{head}\n{textwrap.dedent(text).strip()}\n```"


def _embedded(image: re.Match[str]) -> str:
    """Return the Markdown of an image that contains its file."""
    content = base64.b64encode(Path(image[2]).read_bytes()).decode()
    return f"![{image[1]}](data:{TYPES[image[3]]};base64,{content})"


if __name__ == "__main__":
    source = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        page_text = run(source)
    print(page_text)
