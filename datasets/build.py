"""Build the data files of this folder from their originals, and verify them.

    python datasets/build.py                    verify every file against its card
    python datasets/build.py build ORIGINALS    compress the originals in a folder laid out as EP_BENCH_DATA expects
    python datasets/build.py fingerprints       recompute the fingerprints of `cep` from its SMILES (needs rdkit)
    python datasets/build.py readme             write README.md from the cards

A file is stored xz-compressed, unless the original is compressed already. A card's `sha256` is that of the original
bytes. The same versions of the libraries write the same files.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import lzma
import sys
from pathlib import Path

import numpy as np
import yaml

HERE = Path(__file__).parent
COMPRESSED = {".gz", ".zip", ".xz"}
# The molecules: SMILES and efficiencies as their source has them, from which the card's file is computed.
MOLECULES = HERE / "cep" / "cep-processed.csv.xz"
MOLECULES_ORIGINAL = "molecules/cep.csv"
MOLECULES_SHA256 = "99c3def57a412e0ac3922194d0605b6a8a9056938706a44bc4ba1d35fe8bc8c0"
RADIUS, BITS = 2, 512  # Bui et al. (2015), section 8.3


def main() -> int:
    """Run one command; return 1 if a file does not have the checksum of its card."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=["verify", "build", "fingerprints", "readme"], default="verify")
    parser.add_argument("originals", nargs="?", type=Path, help="folder of the originals, for build")
    arguments = parser.parse_args()
    try:
        return run(arguments.command, arguments.originals)
    except ImportError as error:
        parser.error(f"{error}; run `pip install 'ep-bench[molecules]'`")
    except (OSError, ValueError, yaml.YAMLError) as error:
        parser.error(str(error))


def run(command: str, originals: Path | None) -> int:
    """Run a command, then verify all files; return 1 if a file does not have the checksum of its card."""
    if (originals is None) == (command == "build"):
        raise ValueError("the folder of the originals is required for build, and not allowed for other commands")
    if command == "build":
        build(originals)
    elif command == "fingerprints":
        build_fingerprints()
    elif command == "readme":
        (HERE / "README.md").write_text(readme(), encoding="utf-8")
    return verify()


def all_cards() -> dict[str, dict]:
    """Return all cards, by the names of their data sets, sorted."""
    return {
        path.parent.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*/card.yaml"))
    }


def cards() -> dict[str, dict]:
    """Return the cards of the data sets that have a file here, by name."""
    return {name: card for name, card in all_cards().items() if card.get("path") and card.get("sha256")}


def stored_file(name: str, card: dict) -> Path:
    """Return the path of the stored data file of a card."""
    original = Path(card["path"])
    return HERE / name / (original.name if original.suffix in COMPRESSED else f"{original.name}.xz")


def build(originals: Path) -> None:
    """Compress the originals into this folder. An original may be missing if its file is stored already."""
    files = {name: (card["path"], card["sha256"], stored_file(name, card)) for name, card in cards().items()}
    files["cep"] = (MOLECULES_ORIGINAL, MOLECULES_SHA256, MOLECULES)
    for path, sha256, target in files.values():
        zipped = (originals / path).with_name(f"{Path(path).name}.gz")
        if zipped.exists():
            store(zipped, gzip.decompress(zipped.read_bytes()), sha256, target)
        elif (originals / path).exists() or not target.exists():
            store(originals / path, (originals / path).read_bytes(), sha256, target)
    for target, (original, sha256) in masks().items():
        if (originals / original).exists():
            store(originals / original, mask_text(originals / original, target.name), sha256, target)


def masks() -> dict[Path, tuple[Path, str]]:
    """Return the originals of the stored test sets and the checksums of their texts, by stored file."""
    names = {"folds": "test_mask.csv.gz", "gap": "gap_test_mask.csv.gz"}
    return {
        HERE / name / f"{scheme}.txt.xz": (Path(card["path"]).with_name(names[scheme]), sha256)
        for name, card in cards().items()
        for scheme, sha256 in card.get("masks", {}).items()
    }


def mask_text(original: Path, name: str) -> bytes:
    """Return the test sets of a 0/1 table of points and splits: one line of folds, or one line of 0/1 per split."""
    mask = np.loadtxt(original, delimiter=",", dtype=np.int64)
    lines = [mask.argmax(axis=1)] if name.startswith("folds") else mask.T
    return "".join("".join(map(str, line)) + "\n" for line in lines).encode("ascii")


def store(original: Path, content: bytes, sha256: str, target: Path) -> None:
    """Write an original with the expected checksum, compressed if the name of the target ends in xz."""
    require(original, content, sha256)
    target.write_bytes(compress(content) if target.suffix == ".xz" else content)


def compress(content: bytes) -> bytes:
    """Return the bytes compressed by xz with the strongest preset."""
    return lzma.compress(content, format=lzma.FORMAT_XZ, preset=9 | lzma.PRESET_EXTREME)


def build_fingerprints() -> None:
    """Compute the fingerprints of the molecules: one record per molecule, 512 packed bits and the efficiency."""
    rows = list(csv.DictReader(io.StringIO(read(MOLECULES).decode("ascii"))))
    table = np.empty(len(rows), dtype=[("fingerprint", "u1", (BITS // 8,)), ("PCE", "<f8")])
    table["fingerprint"] = np.packbits(fingerprints([row["smiles"] for row in rows]), axis=1)
    table["PCE"] = [float(row["PCE"]) for row in rows]
    file = io.BytesIO()
    np.save(file, table, allow_pickle=False)
    stored_file("cep", cards()["cep"]).write_bytes(compress(file.getvalue()))


def fingerprints(smiles: list[str]) -> np.ndarray:
    """Return binary Morgan fingerprints, an array (n, BITS) of 0 and 1."""
    from rdkit import Chem, RDLogger
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    RDLogger.DisableLog("rdApp.*")  # one deprecation warning per molecule
    generator = GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    return np.array([generator.GetFingerprintAsNumPy(Chem.MolFromSmiles(one)) for one in smiles], dtype=np.uint8)


def readme() -> str:
    """Return the text of README.md: an overview, then sources, licences and citations from the cards."""
    every = all_cards()
    stored = {name: card for name, card in every.items() if name in cards()}
    generated = [f"`{name}`" for name, card in every.items() if card.get("embedded")]
    lines = [README_HEAD, "", "| Name | Title | Points | Inputs | Task |", "|---|---|---:|---:|---|"]
    for name, card in stored.items():
        task = f"{len(card['classes'])} classes" if card.get("classes") else "regression"
        lines.append(f"| [`{name}`](#{name}) | {card['title']} | {card['n']:,} | {card['d']} | {task} |")
    lines += ["", README_REST.format(generated=", ".join(generated))]
    for name, card in stored.items():
        lines += ["", f"### {name}", "", f"{card['citation'].rstrip('.')}."]
        lines += ["", f"- Source: {card['source']}", f"- Licence: {card['licence']}", f"- sha256: `{card['sha256']}`"]
    return "\n".join([*lines, ""])


README_HEAD = """# Data sets

One folder per data set: `card.yaml` has its size, columns, source, licence, citation and peculiarities; the data file
next to it is the original, compressed by xz unless it is compressed already; `cep` has fingerprints computed from the
original, which is next to them. `folds.txt.xz` has the published fold of each data point, and `gap.txt.xz` one line per
input, with a 1 for each test point of the public gap splits. The folder named by `EP_BENCH_DATA` and the user's cache
take precedence. A wheel has the files inside the package. `ep-bench data show NAME` prints a card, `ep-bench data
verify` compares the files with their checksums.

In a clone, `python datasets/build.py build FOLDER` rebuilds the files from the originals and verifies their checksums.
`python datasets/build.py fingerprints` computes the inputs of `cep`, which needs the extra `molecules` (RDKit). The
docstring of the script has the layout of FOLDER. This page is written by `python datasets/build.py readme`."""
README_REST = """## No data file

- {generated}: drawn by the package or taken from scikit-learn.
- `year`: too large; `ep-bench data fetch year` downloads it.

## Licences

The MIT licence of this repository covers the code only. Each data set has its own terms, stated below as far as they
are known. *None stated* means that no licence of the data is known: clear your use with the authors. CC BY 4.0 requires
that you cite the authors. The files of boston, concrete, energy, kin8nm, naval, power, protein, wine and yacht come
from a repository that puts its own contributions under CC BY-NC 4.0.

## Sources, licences, citations"""


def verify() -> int:
    """Compare every stored file with its checksum; print one line per file."""
    files = [(stored_file(name, card), card["sha256"]) for name, card in cards().items()]
    wrong = 0
    files += [(path, sha256) for path, (_, sha256) in masks().items()]
    for path, sha256 in [*files, (MOLECULES, MOLECULES_SHA256)]:
        try:
            require(path, read(path), sha256)
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            wrong += 1
            print(f"{path.relative_to(HERE)}: {error}", file=sys.stderr)
        else:
            print(f"{path.relative_to(HERE)}: {path.stat().st_size} bytes, sha256 as expected")
    return 1 if wrong else 0


def read(path: Path) -> bytes:
    """Return the original bytes of a stored file."""
    content = path.read_bytes()
    return lzma.decompress(content) if path.suffix == ".xz" else content


def require(path: Path, content: bytes, sha256: str) -> None:
    """Raise ValueError unless the bytes have the checksum."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(f"{path.name} has the sha256 {found}, expected {sha256}")


if __name__ == "__main__":
    sys.exit(main())
