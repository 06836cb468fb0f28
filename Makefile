# `make demo` and `make test` are all a newcomer needs; both set everything up by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
TEST_STAMP := $(VENV)/.installed-test
BENCH_STAMP := $(VENV)/.installed-bench
# Test scratch files stay inside the project folder.
export TMPDIR := $(CURDIR)/.tmp

.PHONY: demo test test-long lint format bench bench-query soak docs dist coverage mutants clean

demo: $(STAMP)
	@$(BIN)/python scripts/build_studio.py || true
	@$(BIN)/python examples/demo.py

test: $(TEST_STAMP)
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long"

test-long: $(TEST_STAMP)
	@OMNIGRAPH_TEST_LONG=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(TEST_STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(TEST_STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(BENCH_STAMP)
	@$(BIN)/python -m bench

# The nine questions and what bounds a query, then the forms of the language that they do without
bench-query: $(BENCH_STAMP)
	@$(BIN)/python -m bench query forms

# One family of benchmarks: make bench-query, bench-storage, bench-mutations, bench-languages, bench-cli
bench-%: $(BENCH_STAMP)
	@$(BIN)/python -m bench $*

# The docs site. Links that lead nowhere and names that do not exist are errors.
docs: $(VENV)/.installed-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "docs: build/site/quickstart.html"

# The sdist and the wheel, and a try of the wheel in an empty environment.
dist: $(VENV)/.installed-dist
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist
	@$(PYTHON) scripts/try_wheel.py dist

coverage: $(VENV)/.installed-coverage
	@$(BIN)/python -m coverage run -m pytest -m "not long"
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage html --quiet
	@$(BIN)/python -m coverage report

# Small changes to commit/, merge/ and validation/ that tests must notice: SAMPLE of each package.
SAMPLE ?= 60
mutants: $(VENV)/.installed-mutants
	@$(BIN)/python scripts/mutants.py --sample $(SAMPLE)

$(STAMP): pyproject.toml
	@$(PYTHON) scripts/setup_venv.py $(VENV)
	@mkdir -p .tmp
	@touch $@

$(TEST_STAMP): pyproject.toml
	@$(PYTHON) scripts/setup_venv.py $(VENV) test
	@mkdir -p .tmp
	@touch $@ $(STAMP)

$(BENCH_STAMP): pyproject.toml
	@$(PYTHON) scripts/setup_venv.py $(VENV) test,bench
	@mkdir -p .tmp
	@touch $@ $(STAMP) $(TEST_STAMP)

$(VENV)/.installed-%: pyproject.toml
	@$(PYTHON) scripts/setup_venv.py $(VENV) test,$*
	@mkdir -p .tmp
	@touch $@

# Random operations in four processes that are killed at random, against a model: on local disk, then on a faulty S3.
MINUTES ?= 20
soak: $(TEST_STAMP)
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --place local
	@$(BIN)/python -m tests.soak --minutes $(MINUTES) --place s3

clean:
	rm -rf $(VENV) .tmp .mypy_cache .ruff_cache .pytest_cache build *.egg-info src/*.egg-info
