# make run      run a first study and write its report    make check     linter, types and fast tests, before every commit
# make test     run the tests                             make test-all  also run the exhaustive tests
# make regress  compare our results with published ones   make bench     measure timings as ratios
# make verify   compute stored results again, for a minute  make lock   update requirements/lock.txt
# make check-results  write check.csv of every folder    make docs-tables  write the tables of the documentation
# make reports  write the reports of all committed results  make figures  copy the figures of README and pages from them
# make docs     build the documentation site in build/site  make clean  remove the environment and all caches
# make suite    collect finished cells in results/suite
# make dist     build, check and install wheel and source archive    make image-steps  run the steps of the container image
# make results-archive   pack the committed results, for users of a wheel
# make release VERSION=1.0.0 REPOSITORY=URL   state version, date and address of a release in all files
# make workflows  validate the workflows    make test-minimum  fast tests with the lowest versions of the libraries
# make outdated, audit, licences  of the locked dependencies    make costs  measure fits of new methods, for estimates of plans

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
TOOLS  := build/tools/bin
TOOLS_READY := build/tools/.ready
JOBS   ?= $(shell $(PYTHON) -c "import os; print(min(8, os.cpu_count() or 1))")
RESULTS ?= results
# The names of the folders of committed results, without those of the user's own runs.
COMMITTED = $(shell $(PYTHON) docs/site/committed_results.py)
REPORTS = $(COMMITTED:%=build/reports/%/report.html)
# Each test process has one BLAS thread; with one thread per core, the processes would slow each other down.
# There is one process more than cores, because some tests wait. `loadgroup` runs tests that compile the same kernels in
# the same process (tests/conftest.py).
TEST_JOBS ?= $(shell $(PYTHON) -c "import os; print(min(8, os.cpu_count() or 1) + 1)")
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(TEST_JOBS) --dist loadgroup

.PHONY: run test test-exhaustive test-all check check-results reports figures docs-tables docs regress verify suite bench costs lock \
  release dist results-archive image-steps workflows outdated audit licences test-minimum clean
.DELETE_ON_ERROR:

run: $(READY)
	$(BIN)/ep-bench run configs/quickstart.yaml --results $(RESULTS) --jobs $(JOBS)
	$(BIN)/ep-bench check $(RESULTS)/quickstart
	$(BIN)/ep-bench report $(RESULTS)/quickstart

test: $(READY)
	$(PYTEST) -m "not exhaustive"

test-exhaustive: $(READY)
	$(PYTEST) -m exhaustive

test-all: $(READY)
	$(PYTEST)

# Without tests marked as slow, and without those that took long on this machine (`--fast`, tests/conftest.py).
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow and not exhaustive" --fast

# The cells are always recomputed, because stored cells would not show the effect of changes to the code. First PBP, with
# the published numbers; then all stored cells of the cheapest methods on the five small data sets, with their rows.
regress: $(READY)
	rm -rf build/regress
	$(BIN)/ep-bench run configs/regress.yaml --results build/regress --jobs $(JOBS)
	$(BIN)/ep-bench check build/regress/regress
	$(BIN)/ep-bench verify $(addprefix $(RESULTS)/,pbp-table-1 pbp-layers bnn-optimisation controls gap) --all --jobs $(JOBS) \
	  $(addprefix --select dataset=,boston concrete energy wine yacht) \
	  --select 'method=PBP*' --select method=BP-1 --select method=Constant --select 'method=Bayesian ridge'

check-results: $(READY)
	set -e; for folder in $(addprefix $(RESULTS)/,$(COMMITTED)); do echo "$$folder"; $(BIN)/ep-bench check "$$folder" --summary; done

# In build/reports. A report is written again only if its results or the package have changed.
reports: $(READY)
	$(MAKE) --no-print-directory --jobs $(JOBS) $(REPORTS)

build/reports/suite/report.html: FURTHER = $(wildcard results/*/submission.json)
build/reports/%/report.html: results/%/study.lock.json $(shell find ep_bench -type f -not -name '*.pyc')
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/ep-bench report results/$* $(FURTHER:%/submission.json=%) --out $(@D)

# The figures of reports that README and pages show.
figures: $(READY) $(foreach study,suite bnn-optimisation nn-ep-convergence breadth small-n fidelity bands,build/reports/$(study)/report.html)
	cp build/reports/suite/figures/ranks-ll.svg build/reports/suite/figures/score-against-time.svg docs/figures/
	cp build/reports/bnn-optimisation/figures/critical-difference-ll.svg docs/figures/
	cp build/reports/nn-ep-convergence/figures/network-times-nn-ep-convergence.svg docs/figures/
	cp build/reports/breadth/figures/differences-by-size.svg build/reports/small-n/figures/learning-curves-rmse.svg docs/figures/
	cp build/reports/fidelity/figures/fidelity-fidelity.svg docs/figures/
	cp build/reports/bands/figures/bands-bands-relu-concrete.svg docs/figures/bands-concrete.svg
	$(BIN)/python docs/site/page_figures.py

docs-tables: $(READY)
	$(BIN)/python docs/site/write_tables.py

# Strict and offline. The tutorials and reports are made once, and again after a change of them or of the package.
docs: $(DOCS_READY) reports
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/python -m mkdocs build
	$(BIN)/python docs/site/check_site.py build/site

# The suite is that of the stored cells of the studies that it includes.
suite: $(READY)
	$(BIN)/ep-bench run configs/suite.yaml --results $(RESULTS) --stored-only
	$(BIN)/ep-bench check $(RESULTS)/suite --summary
	$(BIN)/ep-bench report $(RESULTS)/suite

# Each time another random choice of cells; the last line of the output has its seed. Some folders are omitted. Most cells of
# bnn-sampling take minutes to hours. The training in dgp-classes, that of the released program, has a constant rate and ends before it has converged. In
# ensemble, rounding errors change means by more than is allowed, most in the entry with the unstable step size of the paper.
verify: $(READY)
	$(BIN)/ep-bench verify $(addprefix $(RESULTS)/,$(filter-out bnn-sampling dgp-classes ensemble suite,$(COMMITTED))) --budget 60 --jobs $(JOBS)

bench: $(READY)
	$(BIN)/python -m pytest benchmarks -q -o python_files="bench_*.py" -o python_functions="bench_*" --benchmark-columns=median,min,rounds

# Of the methods that fit_costs.json lacks, or of METHODS.
costs: $(READY)
	$(BIN)/python -m benchmarks.fit_costs $(METHODS)

$(READY): requirements/lock.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/ep-bench schema --out configs/study.schema.json
	@touch $@

$(TOOLS_READY): requirements/release.txt
	$(PYTHON) -m venv $(@D)
	$(TOOLS)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	@touch $@

$(DOCS_READY): requirements/docs.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/docs.txt
	@touch $@

# Versions with hashes, for all supported versions of Python and systems; `make lock UPGRADE=` keeps the versions.
UPGRADE = --upgrade
LOCK := $(TOOLS)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --custom-compile-command "make lock" $(UPGRADE) --output-file

lock: $(TOOLS_READY)
	$(LOCK) requirements/lock.txt pyproject.toml --extra dask --extra bench --extra dev
	$(LOCK) requirements/run.txt pyproject.toml --constraint requirements/lock.txt --extra dask
	$(LOCK) requirements/docs.txt pyproject.toml --constraint requirements/lock.txt --extra docs
	$(LOCK) requirements/release.txt --group release

# Newer versions, known vulnerabilities and licences of what is locked.
outdated: $(READY)
	$(BIN)/python -m pip list --outdated

audit: $(TOOLS_READY)
	for file in run lock docs release; do $(TOOLS)/pip-audit --require-hashes --disable-pip --requirement requirements/$$file.txt || exit 1; done

licences: $(TOOLS_READY) $(READY)
	$(TOOLS)/pip-licenses --python $(BIN)/python --from mixed --format csv --with-urls --ignore-packages ep-bench \
	  --output-file requirements/licences.csv

# The fast tests with the lowest versions that pyproject.toml permits. The committed results are those of the locked ones.
test-minimum: $(TOOLS_READY)
	$(TOOLS)/uv venv --quiet --clear --python $(PYTHON) build/minimum
	$(TOOLS)/uv pip install --quiet --python build/minimum --resolution lowest-direct --editable '.[dask]'
	$(TOOLS)/uv pip install --quiet --python build/minimum pytest-xdist pytest-benchmark hypothesis 'pytest<9.2' jsonschema scoringrules ruff
	$(subst $(BIN),build/minimum/bin,$(PYTEST)) -m "not slow and not exhaustive" \
	  --ignore=tests/test_stale_results.py $(TESTS)

# Wheel and source archive, each installed and used in an environment of its own. The libraries are those of $(VENV);
# `make dist LIBRARIES=own` installs them too.
dist: $(READY) $(TOOLS_READY)
	rm -rf dist build/fresh
	$(BIN)/python -m build --no-isolation
	$(TOOLS)/twine check --strict dist/*
	sh release/try_archives.sh $(BIN)/python $(LIBRARIES)

# Unpacked, it is the folder `results/` of a clone.
results-archive:
	mkdir -p build
	git archive --format tar.gz --output build/ep-bench-results.tar.gz HEAD results

# The steps of the image, without a builder.
image-steps: dist
	rm -rf build/image && mkdir -p build/image
	cp requirements/run.txt dist/*.whl release/install.sh build/image
	cd build/image && sh install.sh ep-bench && ep-bench/bin/ep-bench doctor

workflows: $(TOOLS_READY)
	$(TOOLS)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(TOOLS)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml

# The commit of a release. VERSION empty: write the files again that follow from CITATION.cff.
release: $(READY)
	$(BIN)/python -m release.metadata $(VERSION) $(REPOSITORY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
