# make run      run a first study and write its report    make check     linter, types and fast tests, before every commit
# make test     run the tests                             make test-all  also run the exhaustive tests
# make regress  compare our results with published ones   make bench     measure timings as ratios
# make verify   compute stored results again, for a minute  make lock   update requirements/lock.txt
# make check-results  write check.csv of every folder    make docs-tables  write the tables of the documentation
# make reports  write the reports of all committed results  make figures  copy the figures of README and pages from them
# make docs     build the documentation site in build/site  make clean  remove the environment and all caches
# make suite    collect finished cells in results/suite

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready
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

.PHONY: run test test-exhaustive test-all check check-results reports figures docs-tables docs regress verify suite bench lock clean
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

build/reports/%/report.html: results/%/study.lock.json $(shell find ep_bench -type f -not -name '*.pyc')
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/ep-bench report results/$* --out $(@D)

# The figures of reports that README and pages show.
figures: $(READY) $(foreach study,suite bnn-optimisation nn-ep-convergence,build/reports/$(study)/report.html)
	cp build/reports/suite/figures/ranks-ll.svg build/reports/suite/figures/score-against-time.svg docs/figures/
	cp build/reports/bnn-optimisation/figures/critical-difference-ll.svg docs/figures/
	cp build/reports/nn-ep-convergence/figures/network-times-nn-ep-convergence.svg docs/figures/
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

$(READY): requirements/lock.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/ep-bench schema --out configs/study.schema.json
	@touch $@

$(DOCS_READY): requirements/docs.txt $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/docs.txt
	@touch $@

lock: $(READY)
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/python -m piptools compile --quiet --upgrade --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --extra dask --extra bench --extra dev --output-file requirements/lock.txt pyproject.toml
	$(BIN)/python -m piptools compile --quiet --upgrade --strip-extras --allow-unsafe --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --constraint requirements/lock.txt --extra docs --output-file requirements/docs.txt pyproject.toml

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
