# make demo    install into .venv, scan the examples, draw the clusters, write pairs.csv
# make test    lint, types and all tests
# make bench   speed beside other packages, in an environment of its own; ten to twenty minutes
# make quality precision and recall on labelled corpora: DATA is a folder of folders with
#              docs.jsonl (id, text) and oracle_pairs.csv (id1, id2, jaccard)

PYTHON ?= python3
DATA ?= ../shared/data
BIN := .venv/bin
BENCH := .venv-bench/bin
PEERS := .venv-bench/peers

.PHONY: demo test format bench quality clean

demo: .venv/installed
	$(BIN)/neardup scan examples/docs -o pairs.csv --show

test: .venv/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

quality: .venv-bench/installed
	$(BENCH)/python tests/benchmarks/quality.py $(DATA)

bench: .venv-bench/installed
	$(BENCH)/python tests/benchmarks/fingerprint.py --data $(DATA) --peers $(PEERS)
	$(BENCH)/python tests/benchmarks/index.py --peers $(PEERS)
	$(BENCH)/python tests/benchmarks/verify.py
	$(BENCH)/python tests/benchmarks/end_to_end.py --data $(DATA)

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

# simhash and simhash-pybind both call their module simhash: each gets a folder of its own.
.venv-bench/installed: pyproject.toml tests/benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-bench
	$(BENCH)/python -m pip install --quiet --editable ".[fast]" -r tests/benchmarks/requirements.txt
	$(BENCH)/python -m pip install --quiet --no-deps --upgrade --target $(PEERS)/simhash simhash==2.1.2
	$(BENCH)/python -m pip install --quiet --no-deps --upgrade --target $(PEERS)/simhash-pybind simhash-pybind==0.0.3
	touch $@

clean:
	rm -rf .venv .venv-bench pairs.csv clusters.csv
