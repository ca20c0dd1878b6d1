# Every target sets up .venv first. In an active conda environment:
# make figures PYTHON=python
PYTHON = .venv/bin/python
UV = .venv/bin/uv
ifeq ($(PYTHON),.venv/bin/python)
READY = .venv/.ready
endif
unexport PYTHONDONTWRITEBYTECODE

.PHONY: figures preview verify robust lint test quick all-tests quick-tests mutate test-browser \
  test-crawlers live article site test-site bench lab notebooks lock clean
figures: $(READY)
	$(PYTHON) -m paperfigs build
preview: $(READY)
	$(PYTHON) -m paperfigs build --profile preview
robust: $(READY)
	$(PYTHON) -m paperfigs robust
verify: $(READY)
	$(PYTHON) -m paperfigs verify
# One BLAS thread for each process: two processes with two threads each would wait
# for one another.
all-tests quick-tests: export OPENBLAS_NUM_THREADS = 1
PYTEST = $(PYTHON) -m pytest -n 2 --dist loadfile
# At low priority: beside tests, in the time that these leave.
lint: $(READY)
	nice $(PYTHON) -m ruff check .
	nice $(PYTHON) -m ruff format --check .
	nice $(PYTHON) -c "from importlinter.cli import lint_imports_command as run; run()"
	nice $(PYTHON) -m mypy
test: $(READY)
	$(MAKE) --jobs 2 lint all-tests
quick: $(READY)
	$(MAKE) --jobs 2 lint quick-tests
all-tests: $(READY)
	$(PYTEST) --doctest-modules --nbval --nbval-current-env \
	  --nbval-cell-timeout=120 src tests notebooks
# nbval imports half a second of Jupyter into each process, and is not used here.
quick-tests: $(READY)
	$(PYTEST) -p no:nbval --doctest-modules -m "not slow" src tests
# Small errors that the tests should find; all of them take days: make mutate SAMPLE=500
SAMPLE = 100
mutate: $(READY)
	nice -n 10 $(PYTHON) benchmarks/mutants.py --sample $(SAMPLE)
# With Scrapy and changedetection.io themselves, in an environment of 600 MB.
build/crawlers/.ready: .ci/crawlers.lock $(READY)
	$(UV) venv --quiet --clear --python $(PYTHON) build/crawlers
	$(UV) pip install --quiet --python build/crawlers/bin/python --require-hashes -r .ci/crawlers.lock
	touch $@
test-crawlers: build/crawlers/.ready
	$(PYTHON) -m pytest tests/crawlers/round_trips.py
# The spider takes Scrapy from there, and the rest from .venv.
live: build/crawlers/.ready
	$(PYTHON) benchmarks/live.py build/crawlers/lib/python*/site-packages
test-browser: $(READY)
	tests/browser/run.sh $(PYTHON)
# From the records in figures/, which it does not change.
article: $(READY)
	$(PYTHON) docs/article/build.py
site: article
	$(PYTHON) -m sphinx -b html -j 2 -q -W --keep-going -c docs . build/site/html
test-site: site
	tests/browser/run.sh $(PYTHON) site
# Processor time adds up the threads of BLAS, which wait for one another: with two,
# SLSQP takes up to sixteen times as much, and the ratio says nothing.
bench: export OPENBLAS_NUM_THREADS = 1
bench: $(READY)
	$(PYTHON) benchmarks/run.py
lab: $(READY)
	$(PYTHON) -m jupyterlab --LabApp.default_url=/lab/tree/notebooks
notebooks: $(READY)
	$(PYTHON) -m paperfigs refresh
# Each file with checksums: of everything, of the science alone, of uv itself, of the
# two crawlers of test-crawlers.
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --no-header
lock: $(READY)
	$(COMPILE) --all-extras --no-strip-extras pyproject.toml -o .ci/requirements.lock
	printf '%s\n' pytest hatchling | \
	  $(COMPILE) -c .ci/requirements.lock pyproject.toml - -o .ci/science.lock
	echo uv==0.13.8 | $(COMPILE) - -o .ci/uv.lock
	printf '%s\n' changedetection.io scrapy | $(COMPILE) - -o .ci/crawlers.lock
clean:
	rm -rf .venv build figures/.stamps figures/.staging*

# JupyterLab shows a notebook as changed when it opens it, if the kernel's version of
# Python is not the one in the notebook. So kernels do not say theirs.
WITHOUT_VERSION = c.IPKernelApp.exec_lines = \
  ["get_ipython().kernel.language_info.pop(\"version\", None)"]

# JupyterLab asks about news, in front of the picture of the lesson.
WITHOUT_NEWS = {"@jupyterlab/apputils-extension:notification": \
  {"fetchNews": "false", "checkForUpdates": false}}

# uv is three times as fast as pip; pip serves where uv cannot reach the index that
# pip is set up for.
.venv/.ready: .ci/requirements.lock pyproject.toml .ci/uv.lock
	python3 -c "import sys; sys.version_info >= (3, 11) or sys.exit('Python 3.11 or newer is needed, this is ' + sys.version)"
	python3 -m venv --clear .venv
	.venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r .ci/uv.lock
	$(UV) pip install --quiet --python .venv/bin/python --require-hashes -r .ci/requirements.lock \
	  || .venv/bin/pip install --quiet --require-hashes -r .ci/requirements.lock
	$(UV) pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	mkdir -p .venv/etc/ipython
	printf '%s\n' '$(WITHOUT_VERSION)' > .venv/etc/ipython/ipython_kernel_config.py
	mkdir -p .venv/share/jupyter/lab/settings
	printf '%s\n' '$(WITHOUT_NEWS)' > .venv/share/jupyter/lab/settings/overrides.json
	touch $@
