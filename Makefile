# `make conformance` does everything a newcomer needs; `make test` runs the suite's own tests; `make help` lists the rest.
.PHONY: attest attest-raise bbr bench clean conformance coverage dist fast fidelity format guests help identify-check image \
  image-full kernel lint mutants mutants-record published quick record reference schemas setup site test thorough zones-check
.NOTPARALLEL:
.DEFAULT_GOAL := conformance
# Tests start Python some hundred times, and each would compile the suite, and pytest rewrite it, for seconds.
unexport PYTHONDONTWRITEBYTECODE

CONFORMANCE := .venv/bin/conformance
PYTEST := .venv/bin/pytest
TRIALS ?= 5
#: what `make quick` tests
QUICK := $(addprefix tests/unit/,model engine catalogue support guest test_layers.py test_documents.py)
#: percent of the model's branches that its tests take, at least
FLOOR := 98
#: whole runs of the references that count the false alarms
RUNS ?= 200
#: the generations of BBR whose kernels the user has built (docs/bbr-kernels.md)
BUILT_BBR = $(shell $(CONFORMANCE) kernel list 2> /dev/null | grep -oE '^bbrv[23] ')

conformance: kernel  ## set up, build the guest kernel, test Linux TCP's smoke tier and CUBIC's heatmap, report
	$(CONFORMANCE) doctor
	status=0; \
	$(PYTEST) -q -m smoke --trials $(TRIALS) || status=$$?; \
	$(PYTEST) -q -m cubic --grid 10mbps --trials $(TRIALS) || status=$$?; \
	$(CONFORMANCE) report && exit $$status

help:  ## list what make can do here
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS='	' read -r target text; do \
	  printf '%-16s %s\n' "$$target" "$$text"; done

quick: lint  ## lint, then the tests of model, engine and documents (half a minute)
	$(PYTEST) $(QUICK) -q -m "not slow and not guest" -n auto

# -k: what boots guests is tested even if something else fails
test: lint kernel  ## the suite's own tests: lint, those that boot nothing, then those that boot guests (seven minutes)
	./setup.sh quic
	$(MAKE) -k fast guests

# Commands look a kernel up before they do anything, so their tests need one, although they boot none.
fast: kernel  ## the tests that boot no guest
	$(PYTEST) tests -q -m "not guest and not thorough" -n auto

#: guests wait for their cores, so one more process than there are cores keeps these busy
AT_ONCE = $(shell expr $$(nproc) + 1)

guests: kernel  ## tests that boot guests, each behaviour in its cheapest form; one at a time on each core
	./setup.sh quic
	$(PYTEST) tests -q -m "guest and not thorough" -n $(AT_ONCE)

thorough: kernel  ## further proofs of what `make test` proves: more trials, seeds, networks and stacks
	./setup.sh quic
	$(PYTEST) tests -q -m thorough -n $(AT_ONCE)

# Not by pytest --cov: pytest loads the plugin, and with it the model, before that begins to watch.
coverage: kernel  ## branch coverage of the model by unit tests that boot no guest; fails below the floor
	.venv/bin/python -m coverage run --branch --source=conformance/model -m pytest \
	  tests/unit/model tests/unit/catalogue tests/unit/commands -q -m "not guest"
	.venv/bin/python -m coverage report --show-missing --skip-covered --fail-under=$(FLOOR)

schemas: setup  ## generate JSON Schemas (conformance/schemas) of what commands print and of some files
	.venv/bin/python -m conformance.commands.schemas

setup:  ## install what is missing
	@./setup.sh

kernel: setup  ## build the guest kernel, once
	@$(CONFORMANCE) kernel build

fidelity: kernel  ## compare with the published cells at 10 and 20 Mbit/s, 20 trials (about 5 minutes an algorithm)
	for algorithm in cubic reno bbrv1 $(BUILT_BBR); do for grid in 10mbps 20mbps; do \
	  $(CONFORMANCE) run $$algorithm --grid $$grid --trials 20 --results results/fidelity.jsonl || test $$? -ne 2 || exit; \
	done; done
	$(CONFORMANCE) dev fidelity results/fidelity.jsonl

bench: kernel  ## what trials cost, by cell and by stack, and what whole commands take, beside aims (WHOLE=--whole: those of minutes, too)
	$(CONFORMANCE) dev bench --figures $(WHOLE)
	$(CONFORMANCE) dev bench
	$(CONFORMANCE) dev bench --stacks

#: what zones are derived from beside the grid: a zone that has the cells, and the profile
FURTHER := cubic/heatmap-packets:packets cubic/identify-queue:identify cubic/startup:startup \
  cubic/sawtooth-utilization:sawtooth cubic/competing:competing cubic/pacing:pacing bbrv1/threshold:loss-threshold
#: scenarios whose points have zones
SHARED := fairness rtt-fairness coexistence short-flows queues recovery bonded split

reference: kernel  ## measure the zones' references anew, 20 trials a cell (about 20 minutes an algorithm); docs/add-a-zone.md derives
	for algorithm in cubic reno bbrv1 $(BUILT_BBR); do \
	  $(CONFORMANCE) run $$algorithm --trials 20 --first-seed 1 --results results/reference.jsonl || test $$? -ne 2 || exit; \
	  for zone in $(FURTHER); do \
	    $(CONFORMANCE) run $$algorithm --grid $${zone%:*} --profile $${zone#*:} --trials 20 --first-seed 1 \
	      --results results/reference.jsonl || test $$? -ne 2 || exit; \
	  done; \
	  for scenario in $(SHARED); do \
	    $(CONFORMANCE) scenario run $$scenario --grid zone --algorithm $$algorithm --trials 20 --first-seed 1 \
	      --results results/reference.jsonl || test $$? -ne 2 || exit; \
	  done; \
	done

bbr: kernel  ## BBRv1, v2 and v3, each against the zone of each
	$(CONFORMANCE) dev cross bbrv1 bbrv2 bbrv3

identify-check: kernel  ## 20 identifications of every algorithm with a zone for it, one trial a cell: right or inconclusive
	$(CONFORMANCE) dev identify-check

zones-check: setup  ## zone files against schema, invariants and what mutants did
	$(CONFORMANCE) zones check

mutants: kernel  ## test the tester: mutants detected, by which cells, and the false alarms of RUNS runs; it resumes (4 h)
	status=0; \
	$(CONFORMANCE) dev mutants || status=$$?; \
	$(CONFORMANCE) dev mutants --false-alarms $(RUNS) || status=$$?; \
	exit $$status

mutants-record: kernel  ## keep the score of `make mutants` for `zones check`, and write it as Markdown for docs/findings-mutants.md
	$(CONFORMANCE) dev mutants --record --out results/mutants.md

#: where the published lines are kept, and what the table of them is called
PUBLISHED := reports/published

published: kernel  ## measure every stack that is built here x algorithm, 10 Mbit/s, 5 to 20 trials, and publish it; it resumes (hours)
	$(CONFORMANCE) matrix --grid 10mbps --results results/published.jsonl
	$(CONFORMANCE) publish results/published.jsonl --out $(PUBLISHED)
	$(MAKE) site

record: kernel  ## measure what registries have released since, and add it to the history of stacks (minutes a release)
	mkdir -p results
	$(CONFORMANCE) dev record > results/changes.md; status=$$?; cat results/changes.md; exit $$status

site: setup  ## the pages of what is published, by today's zones, into site/; docs/matrix.md from the same (a minute)
	$(CONFORMANCE) export matrix $(PUBLISHED)/*.jsonl.xz --out docs/matrix.md
	$(CONFORMANCE) report $(PUBLISHED)/*.jsonl.xz $(wildcard $(PUBLISHED)/*/*.jsonl.xz) --out site --no-terminal --history

#: program that builds images, what they are called, what they begin with (Debian 12), an image with a Rust for the full
#: one, and further options of the program
BUILDER ?= podman
IMAGE ?= cc-conformance
BASE ?= debian:12-slim
RUST ?= rust:1.95-slim-bookworm
BUILD_OPTIONS ?=
BUILD_IMAGE = $(BUILDER) build -f Containerfile --build-arg BASE=$(BASE) --build-arg RUST=$(RUST) $(BUILD_OPTIONS)

image:  ## a container image: suite, guest kernel, Linux TCP (docs/containers.md; some minutes, most for the kernel)
	$(BUILD_IMAGE) -t $(IMAGE) .

image-full:  ## the same with every stack that is built from registries, figures and parquet (an hour)
	$(BUILD_IMAGE) --target full -t $(IMAGE):full .

dist: kernel  ## the wheels cc-conformance and cc-conformance-kernel, into dist/ (docs/install.md; needs ./setup.sh quic)
	rm -rf dist
	.venv/bin/python -m hatchling build -t wheel
	cd kernel-wheel && ../.venv/bin/python -m hatchling build -t wheel -d ../dist
	cd dist && sha256sum *.whl > SHA256SUMS

attest: kernel  ## replay the golden trials: equal results attest the present sources to the present lab version
	.venv/bin/python tests/golden/attest.py

attest-raise: kernel  ## results are meant to change: record the golden trials anew, under a new lab version
	.venv/bin/python tests/golden/attest.py --raise

lint: setup  ## style, names, types and layers
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python tests/check_names.py
	.venv/bin/lint-imports --no-logo
	.venv/bin/mypy

format: setup  ## mend what `make lint` says of style, and the form of zone files
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .
	$(CONFORMANCE) dev zones fmt

clean:  ## remove the virtual environment, results and reports
	rm -rf .venv dist results report site
