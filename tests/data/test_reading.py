"""Loading by card: where files are looked for, what is read, options, errors."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ep_bench import data
from ep_bench.data.cards import Card
from ep_bench.errors import UserError
from ep_bench.types import DatasetRef, SplitScheme

ROWS = np.random.RandomState(0).standard_normal((30, 4))


def toy_card(**changes) -> Card:
    fields = {
        "name": "toy", "title": "toy", "n": 30, "d": 2, "target": "t", "path": "uci/toy/data.txt", "target_column": 3,
        "source": "-", "licence": "-", "citation": "-",
    }  # fmt: skip
    return Card(**fields | changes)


@pytest.fixture
def folders(monkeypatch, tmp_path):
    """Return the three folders where files are looked for: the user's, the cache and the package's; all are empty."""
    folder, cache, shipped = (tmp_path / name for name in ("data", "cache", "shipped"))
    folder.mkdir()
    monkeypatch.setenv("EP_BENCH_DATA", str(folder))
    monkeypatch.setattr("ep_bench.data.locations.cache_folder", lambda: cache)
    monkeypatch.setattr("ep_bench.data.locations.shipped_folder", lambda _: shipped)
    return folder, cache, shipped


@pytest.fixture
def shipped_only(monkeypatch, tmp_path):
    """Look for files in the package alone."""
    monkeypatch.delenv("EP_BENCH_DATA", raising=False)
    monkeypatch.setattr("ep_bench.data.locations.cache_folder", lambda: tmp_path / "no-cache")


def use(monkeypatch, card: Card) -> None:
    monkeypatch.setattr("ep_bench.data.reading.card", lambda _: card)


def put(folder: Path, path: str, rows=ROWS, delimiter: str = " ") -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(delimiter.join(repr(float(value)) for value in row) + "\n" for row in rows).encode()
    if file.suffix == ".gz":
        file.write_bytes(gzip.compress(text))
    elif file.suffix == ".xz":
        file.write_bytes(lzma.compress(text))
    elif file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("inside.txt", text)
    else:
        file.write_bytes(text)
    return file


def test_the_users_folder_precedes_the_cache_and_this_the_package(folders, monkeypatch) -> None:
    folder, cache, shipped = folders
    use(monkeypatch, toy_card())
    put(shipped, "toy/data.txt.xz", ROWS + 2.0)
    dataset = data.load_dataset("toy")
    np.testing.assert_array_equal(dataset.y, ROWS[:, 3] + 2.0)
    original = lzma.decompress((shipped / "toy/data.txt.xz").read_bytes())
    assert dataset.checksum == hashlib.sha256(original).hexdigest()
    assert data.location(toy_card()) == "shipped"
    put(cache, "uci/toy/data.txt", ROWS + 1.0)
    np.testing.assert_array_equal(data.load_dataset("toy").y, ROWS[:, 3] + 1.0)
    file = put(folder, "uci/toy/data.txt")
    assert data.location(toy_card()) == "user's file"
    dataset = data.load_dataset("toy")
    np.testing.assert_array_equal(dataset.y, ROWS[:, 3])
    np.testing.assert_array_equal(dataset.X, ROWS[:, :2])  # column 2 is left out, as naval's second target is
    assert dataset.checksum == hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("path", ["a/data.txt", "a/data.csv.gz", "a/data.txt.zip"])
@pytest.mark.parametrize("delimiter", [",", " ", "\t", "   "])
def test_every_layout_reads_the_same(folders, monkeypatch, path: str, delimiter: str) -> None:
    use(monkeypatch, toy_card(d=3, target_column=0, path=path))
    put(folders[0], path, delimiter=delimiter)
    dataset = data.load_dataset("toy")
    np.testing.assert_array_equal(dataset.X, ROWS[:, 1:])
    np.testing.assert_array_equal(dataset.y, ROWS[:, 0])
    for array in (dataset.X, dataset.y):
        assert array.flags.c_contiguous
        assert array.dtype == np.float64
        assert not array.flags.writeable


def test_a_changed_file_is_used_under_its_own_checksum(folders, monkeypatch) -> None:
    use(monkeypatch, toy_card(sha256="0" * 64))
    ref = DatasetRef("toy", "toy")
    absent = data.describe(ref)
    assert (absent.present, absent.checksum) == (False, "0" * 64)
    put(folders[0], "uci/toy/data.txt")
    first = data.load(ref)
    assert data.describe(ref).checksum == first.checksum != "0" * 64
    put(folders[0], "uci/toy/data.txt", ROWS * 2.0)
    second = data.load(ref)
    assert data.describe(ref).checksum == second.checksum != first.checksum
    np.testing.assert_array_equal(second.y, 2.0 * ROWS[:, 3])


def test_describe_needs_no_file(folders) -> None:
    info = data.describe(DatasetRef("naval", "naval", irrelevant_inputs=3))
    assert (info.n, info.d, info.splits, info.present) == (11934, 19, 20, False)
    assert info.checksum == data.card("naval").sha256
    assert data.describe(DatasetRef("year", "year")).checksum == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 2 3\n4 5\n", "cannot be read"),
        (b"1 2 3 4\n" * 29, "expected 30 data points with 2 inputs as on the card; found 29 with 2"),
        (b"1 2 3 nan\n" * 30, "missing or infinite"),
    ],
)
def test_a_broken_file_is_refused(folders, monkeypatch, content: bytes, message: str) -> None:
    use(monkeypatch, toy_card())
    put(folders[0], "uci/toy/data.txt").write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        data.load_dataset("toy")
    assert "uci/toy/data.txt" in str(caught.value)


def shipped_boston(shipped: Path) -> Path:
    """Return a copy of the shipped file of boston, in the folder of the package."""
    original = data.find_file(data.card("boston"))
    file = shipped / "boston" / original.name
    file.parent.mkdir(parents=True)
    return Path(shutil.copyfile(original, file))


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda content: content[:-40], id="cut"),
        pytest.param(lambda content: lzma.compress(lzma.decompress(content) + b"1 2\n"), id="another original"),
    ],
)
def test_a_damaged_shipped_file_is_one_message(monkeypatch, tmp_path, shipped_only, damage) -> None:
    file = shipped_boston(tmp_path / "shipped")
    file.write_bytes(damage(file.read_bytes()))
    monkeypatch.setattr("ep_bench.data.locations.shipped_folder", lambda _: tmp_path / "shipped")
    ref = DatasetRef("boston", "boston")
    for use_it in (data.load, data.describe):
        with pytest.raises(UserError, match=r"boston/data\.txt\.xz: the data file is damaged .*data fetch boston"):
            use_it(ref)
    (found,) = data.verify(["boston"])
    assert found.status == "changed"


def test_the_message_for_an_absent_file_names_the_download_command(folders) -> None:
    with pytest.raises(UserError, match=r"ep-bench data fetch boston.*uci/boston/data\.txt.*EP_BENCH_DATA"):
        data.load_dataset("boston")


def test_a_wrong_folder_is_reported(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("EP_BENCH_DATA", str(tmp_path / "absent"))
    with pytest.raises(UserError, match="EP_BENCH_DATA: is not a folder"):
        data.load_dataset("boston")


def test_irrelevant_inputs_are_fixed_and_nested() -> None:
    few, more = (data.load_dataset("cubic", irrelevant_inputs=k) for k in (2, 5))
    assert more.X.shape == (20, 6)
    assert more.names == ("x", *(f"irrelevant_{j}" for j in range(1, 6)))
    np.testing.assert_array_equal(few.X, more.X[:, :3])
    np.testing.assert_array_equal(few.X[:, :1], data.load_dataset("cubic").X)
    assert more.X[:, 1:].min() >= 0.0
    assert more.X[:, 1:].max() < 1.0
    assert np.unique(more.X[:, 1:]).size == 100
    other = data.load_dataset("step", irrelevant_inputs=1)
    assert not np.array_equal(other.X[:20, 1], few.X[:, 1])
    assert few.X.flags.c_contiguous


def test_constant_inputs_of_the_paper_are_for_naval(folders, monkeypatch) -> None:
    monkeypatch.setattr("ep_bench.data.reading.card", lambda _: toy_card(paper_constants={1: 1.0}))
    put(folders[0], "uci/toy/data.txt")
    assert data.load_dataset("toy").constants == {}
    assert data.load_dataset("toy", constant_inputs="paper").constants == {1: 1.0}
    monkeypatch.undo()
    assert data.card("naval").paper_constants == {11: 1.0}
    for ask in (data.load, data.describe):
        with pytest.raises(UserError, match=r"boston: constant_inputs.*naval"):
            ask(DatasetRef("boston", "boston", constant_inputs="paper"))
    with pytest.raises(UserError, match="constant_inputs: the data set has no such"):
        data.load_dataset("boston", constant_inputs="none")


def test_suspect_rows_are_left_out_of_the_splits_of_all_points() -> None:
    whole, kept = data.load_dataset("energy"), data.load_dataset("energy", drop_rows="suspect")
    assert kept.dropped == (271,)
    for full, part in zip(data.make_splits(SplitScheme(), whole), data.make_splits(SplitScheme(), kept), strict=True):
        assert part.train.tolist() == [row for row in full.train if row != 271]
        assert part.test.tolist() == [row for row in full.test if row != 271]
    for ask in (data.load, data.describe):
        with pytest.raises(UserError, match=r"boston: drop_rows.*names no suspect rows"):
            ask(DatasetRef("boston", "boston", drop_rows="suspect"))


def test_leaking_inputs_are_left_out_and_the_data_set_is_ranked_without_them() -> None:
    whole, kept = data.load_dataset("bike"), data.load_dataset("bike", drop_inputs="leak")
    np.testing.assert_array_equal(kept.X, whole.X[:, :15])
    assert kept.names == whole.names[:15]
    infos = [data.describe(DatasetRef("bike", "bike", drop_inputs=choice)) for choice in ("none", "leak")]
    assert [(info.d, bool(info.unranked)) for info in infos] == [(17, True), (15, False)]
    with pytest.raises(UserError, match=r"boston: drop_inputs.*names no leak inputs"):
        data.describe(DatasetRef("boston", "boston", drop_inputs="leak"))


# Number of inputs (the first columns of the file), the target's column after them, mean and standard deviation of the
# target, as the source states them.
UCI = {
    "boston": (13, 22.5328, 9.1880),
    "concrete": (8, 35.8180, 16.6976),
    "energy": (8, 22.3072, 10.0836),
    "kin8nm": (8, 0.714283, 0.263591),
    "naval": (16, 0.975000, 0.0147196),
    "power": (4, 454.3650, 17.0661),
    "protein": (9, 7.74853, 6.11824),
    "wine": (11, 5.63602, 0.807317),
    "yacht": (6, 10.4954, 15.1359),
}


@pytest.mark.parametrize("name", UCI)
def test_a_uci_set_is_its_file(shipped_only, name: str) -> None:
    d, mean, std = UCI[name]
    with lzma.open(data.find_file(data.card(name)), "rt") as file:
        table = np.loadtxt(file)
    dataset = data.load_dataset(name)
    np.testing.assert_array_equal(dataset.X, table[:, :d])
    np.testing.assert_array_equal(dataset.y, table[:, d])
    np.testing.assert_allclose([dataset.y.mean(), dataset.y.std()], [mean, std], rtol=1e-5)
    assert dataset.checksum == dataset.card.sha256
    assert dataset.card.n_splits == (5 if name == "protein" else 20)
    assert dataset.card.hidden == (100 if name == "protein" else 50)


def test_the_molecules_are_bits_and_an_efficiency(shipped_only) -> None:
    molecules = data.load_dataset("cep")
    assert molecules.X.shape == (29978, 512)
    assert np.unique(molecules.X).tolist() == [0.0, 1.0]
    assert (round(float(molecules.y.mean()), 4), round(float(molecules.y.std()), 4)) == (3.9005, 2.5375)
    assert (molecules.y.min().round(2), molecules.y.max().round(2)) == (-6.95, 11.09)
    # RDKit's older interface, AllChem.GetMorganFingerprintAsBitVect, sets the same 54 bits of the first molecule.
    assert np.flatnonzero(molecules.X[0])[:8].tolist() == [8, 31, 35, 38, 40, 47, 49, 56]
    assert molecules.X[0].sum() == 54
    split = data.make_split(SplitScheme("holdout"), molecules, 0)
    assert split.test.tolist() == list(range(24978, 29978))
    np.testing.assert_array_equal(split.train, np.arange(24978))


def test_kin40k_and_communities_have_the_known_moments(shipped_only) -> None:
    kin40k, communities = data.load_dataset("kin40k"), data.load_dataset("communities")
    assert kin40k.X.shape == (40000, 8)
    assert round(float(kin40k.y.std()), 3) == 0.997
    assert communities.X.shape == (1993, 102)
    assert (round(float(communities.y.mean()), 3), round(float(communities.y.std()), 3)) == (589.099, 614.784)
    assert communities.names[0] == "population"
    assert communities.names[-1] == "LemasPctOfficDrugUn"
    assert np.ptp(communities.X, axis=0).min() > 0.0


def test_verify_finds_the_shipped_files_sound(shipped_only) -> None:
    states = {name: status for name, status, _ in data.verify()}
    assert {name for name, status in states.items() if status != "ok"} <= {"year"}


@pytest.mark.parametrize(
    ("transform", "back"), [("log", np.exp), ("square_root", np.square), ("cube_root", lambda y: y**3)]
)
def test_a_transformed_target_has_its_own_factors_and_name(transform: str, back) -> None:
    plain, found = (data.load_dataset("diabetes", target_transform=name) for name in ("none", transform))
    np.testing.assert_allclose(back(found.y), plain.y, rtol=1e-12)
    np.testing.assert_array_equal(found.X, plain.X)
    assert found.target == f"{transform.replace('_', ' ')} of {plain.target}"
    ref = DatasetRef("diabetes", "diabetes", target_transform=transform)
    assert ref.options() == {"target_transform": transform}
    assert DatasetRef("diabetes", "diabetes").options() == {}


def test_a_transform_that_is_not_defined_is_refused(folders) -> None:
    with pytest.raises(UserError, match=r"cubic: target_transform: is not defined for \d+ of 20 targets"):
        data.load_dataset("cubic", target_transform="log")
    for ask in (data.load, data.describe):
        with pytest.raises(UserError, match=r"target_transform: unknown value.*did you mean 'cube_root'"):
            ask(DatasetRef("cubic", "cubic", target_transform="cuberoot"))
        with pytest.raises(UserError, match="target_transform: does not apply to classification"):
            ask(DatasetRef("pima", "pima", target_transform="cube_root"))
