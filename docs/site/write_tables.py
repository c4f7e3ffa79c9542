"""Write the tables of README and documentation, and the schema of studies. Run ``make docs-tables``."""

from __future__ import annotations

import json

from page_tables import pages, with_tables
from page_tables.stored import ROOT

from ep_bench.spec.schema import study_schema


def write_schema() -> None:
    """Write the JSON schema of studies that the first line of every study in ``configs/`` names."""
    schema = study_schema()
    text = json.dumps(schema, indent=1, sort_keys=True) + "\n"
    (ROOT / "configs" / "study.schema.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Write all tables and the schema."""
    write_schema()
    for page in pages():
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
