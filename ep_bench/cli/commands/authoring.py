"""``init`` and ``schema``: help with writing a study."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), default=Path("study.yaml"))
@click.option("--method", metavar="TARGET", help="External class to include: package.module:Class or ./file.py:Class.")
def init(file: Path, method: str | None) -> int:
    """Write a first study with comments to FILE, by default study.yaml.

    The study has the name of the file, and its results are in a folder of this name. It runs as it is, in less than a
    minute. An existing file is not replaced.
    """
    from ep_bench.errors import UserError
    from ep_bench.spec import parse_study
    from ep_bench.spec.first_study import first_study

    text = first_study(str(file), method)
    parse_study(text, file)
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise UserError("the file exists; choose another name", where=str(file)) from None
    click.echo(f"{file}: written; next: ep-bench run {shlex.quote(str(file))}")
    return 0


@click.command()
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write.  [default: print]")
def schema(out: Path | None) -> int:
    """Print the JSON schema of a study, for completion in editors.

    Editors with the YAML language server read the schema that a comment names in the first line of a study:
    # yaml-language-server: $schema=FILE
    """
    import json

    from ep_bench.spec.schema import study_schema

    text = json.dumps(study_schema(), indent=1, sort_keys=True) + "\n"
    if out is None:
        click.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
    return 0
