# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test lint types check browser neural site results release data clean fuzz dependable mutation lowest pythons audit

demo: $(VENV)/.installed
	$(BIN)/vsr data list
	$(BIN)/vsr data show feynman-unit/I.39.22
	$(BIN)/vsr data show feynman-unit/I.39.22 --free x3
	$(BIN)/python examples/boyle.py
	$(BIN)/vsr discover feynman-unit/I.39.22 --schedule x3,x2,x1 --out demo-result
	rm -rf demo-comparison
	$(BIN)/vsr compare "trigonometric/inv/3-2-2/prog_[0-2].json" --methods gp,vsr-gp,vsr --max-evaluations 20000 \
		--jobs $(JOBS) --out demo-comparison

test: $(VENV)/.installed-test browser neural lint types check

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

check: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --cov --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/engine/test_kernels.py --cov --cov-append

# For the tests of the report. Where it cannot be had those tests are left out: nothing fails here.
browser:
	@command -v chromedriver > /dev/null || { \
		command -v apt-get > /dev/null && test "$$(id -u)" = 0 && \
		timeout 300 sh -c "apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver" \
			> /dev/null 2>&1; } || echo "no chromium with its driver: the report is not tested in a browser"

# What takes minutes, and is tried before a release.
SECONDS ?= 600
SEED ?= 0
fuzz: $(VENV)/.installed-test
	$(BIN)/python tests/fuzz/fuzz.py --seconds $(SECONDS) --seed $(SEED)

dependable: $(VENV)/.installed-test
	for what in discover compare lab; do $(BIN)/python benchmarks/dependable.py kills --what $$what || exit 1; done
	for what in discover others; do $(BIN)/python benchmarks/dependable.py interrupts --what $$what || exit 1; done
	$(BIN)/python benchmarks/dependable.py places
	$(BIN)/python benchmarks/dependable.py determinism --count 20
	$(BIN)/python benchmarks/dependable.py memory --count 500
	$(BIN)/python benchmarks/dependable.py limits

mutation: $(VENV)/.installed-test
	$(BIN)/python benchmarks/mutation.py

# The suite, or TESTS of it, with the lowest versions that setup.cfg allows, in an environment of its own; PYTHON chooses
# the interpreter (the oldest, as the lowest versions are not there for newer ones).
TESTS ?= tests
lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	sed -n '/^install_requires/,/^$$/p;/^cluster =/,/^[a-z]* =/p;/^plot =/,/^[a-z]* =/p;/^table =/,/^[a-z]* =/p' setup.cfg | \
		sed -n 's/^    \([a-z-]*\) >= \([0-9.]*\)$$/\1==\2/p' > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --editable ".[test]" --constraint .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pytest -n $(JOBS) $(TESTS)

# The suite, or TESTS of it, with every interpreter of PYTHONS that is here, in environments of their own.
PYTHONS ?= 3.10 3.11 3.12 3.13
pythons:
	@for version in $(PYTHONS); do \
		for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
			"$$python" -c "" 2> /dev/null && break; python=; \
		done; \
		test -n "$$python" || { echo "no Python $$version here: left out"; continue; }; \
		echo "Python $$version: $$python"; \
		"$$python" -m venv .venv-$$version && \
		.venv-$$version/bin/python -m pip install --quiet --editable ".[test]" && \
		.venv-$$version/bin/python -m pytest -n $(JOBS) $(TESTS) || exit 1; \
	done

# Strict: where the service cannot be reached nothing was looked up, and that is said.
audit: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet pip-audit bandit
	$(BIN)/bandit --quiet --recursive deap_vsr cfg_mcts --severity-level medium
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/audited.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement $(VENV)/audited.txt

# PyTorch, for tests/neural, which `check` runs where it is there. Where it cannot be had in time they are left out.
neural: $(VENV)/.installed-test
	@test -f $(VENV)/.installed-neural || { \
		timeout 300 $(BIN)/python -m pip install --quiet "torch==2.13.0" > /dev/null 2>&1 && \
		touch $(VENV)/.installed-neural; } || echo "no PyTorch within 5 minutes: tests/neural is left out"

# The documentation site, into site/; a broken link is an error.
site: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Reports of all results/, and docs/results.md with its pictures, from the runs that are there.
results: $(VENV)/.installed
	for folder in results/*/; do $(BIN)/vsr report $$folder || exit 1; done
	$(BIN)/python docs/results.py

# What is published: sdist and wheel, checked, installed into an empty environment and tried there without a network.
release: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet "build >= 1.0" "twine >= 5.1"
	rm -rf dist .venv-release
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet dist/*.whl
	.venv-release/bin/python tests/smoke.py

data: $(VENV)/.installed
	$(BIN)/vsr data make data

clean:
	rm -rf $(VENV) build site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python setup.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.installed-docs: $(VENV)/bin/python setup.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	touch $@ $(VENV)/.installed

$(VENV)/.installed-test: $(VENV)/bin/python setup.cfg pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@ $(VENV)/.installed
