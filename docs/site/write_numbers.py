"""Write the tables of README and documentation, and the schema of studies; check the numbers in sentences.

Run ``make docs-tables`` after results have changed. It prints the numbers in sentences that differ from the results,
and exits with status 1 if there are any.
"""

from __future__ import annotations

import json
import sys

from documented_numbers import pages, with_tables, wrong_numbers
from documented_numbers.stored import ROOT

from ep_bench.catalogue import InstalledCatalogue
from ep_bench.spec.schema import study_schema


def write_schema() -> None:
    """Write the JSON schema of studies that the first line of every study in ``configs/`` names."""
    schema = study_schema(InstalledCatalogue().schema_names())
    text = json.dumps(schema, indent=1, sort_keys=True) + "\n"
    (ROOT / "configs" / "study.schema.json").write_text(text, encoding="utf-8")


def main() -> int:
    """Write all tables and the schema, and print the numbers in sentences that differ from the results."""
    write_schema()
    for page in pages():
        page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    missing = wrong_numbers()
    print("\n".join(missing))
    return len(missing) > 0


if __name__ == "__main__":
    sys.exit(main())
