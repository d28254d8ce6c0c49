# `make run` sets everything up and opens the rehearsal; `make test` sets up and runs the suite.
# Only relative paths: make is started in this folder, whatever that is called.

.DEFAULT_GOAL := help
.PHONY: help run test check bench tasks attacks faults fuzz soak providers mutants projects agents local local-server cov lock newest models picture snapshots site sbom clean set-up

help: ## What can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 10

set-up: ## Make .venv as requirements.lock says
	@./.ci/set-up

run: set-up ## Open the rehearsal: a bundled project, recorded replies, no network, no key
	@.venv/bin/python -m compileall -q tui_agent
	@.venv/bin/tui-agent demo

# A test that fails runs again with the values of its asserts, which take long to prepare.
test: set-up ## Run the tests; ARGS='tests/settings -k trust' runs some of them
	@.venv/bin/python -m compileall -q -j 2 tui_agent tests
	@.venv/bin/python -m pytest --assert=plain $(ARGS) || { [ $$? -ne 1 ] || .venv/bin/python -m pytest --last-failed $(ARGS); exit 1; }

check: set-up ## Format, lint, types, import contracts, structure and words, spelling; all, even if one fails
	@./.ci/check

bench: set-up ## Print every figure that has a target; ARGS=start: of one file; PEERS="codex claude": theirs beside
	@.venv/bin/python -m compileall -q tui_agent
	@PEERS="$(PEERS)" .venv/bin/python tests/benchmarks $(ARGS)

attacks: set-up ## Try every attack on every operation and write the table in docs/notes/security.md
	@.venv/bin/python -m tests.proofs attacks $(ARGS)

faults: set-up ## Kill, cut and burst at a thousand moments and write the table in docs/notes/reliability.md
	@.venv/bin/python -m tests.proofs faults $(ARGS)

fuzz: set-up ## Random edits in every form, disturbed, for an hour; write the table in docs/notes/edits.md
	@.venv/bin/python -m tests.proofs fuzz $(ARGS)

soak: set-up ## 500 turns in one session: memory, descriptors, children, threads, log
	@.venv/bin/python -m tests.proofs soak $(ARGS)

providers: set-up ## 200 sessions with strict servers of all providers; the table in docs/notes/providers.md
	@.venv/bin/python -m tests.proofs providers $(ARGS)

tasks: set-up ## 30 tasks with a scripted model; the table in docs/notes/tasks.md; MODEL=M RUNS=N PEER=aider: a real one
	@test -f build/tasks/node_modules/typescript/lib/typescript.js || npm install --prefix build/tasks --no-audit --no-fund \
		--loglevel=error typescript@5 || echo "without npm the tasks of TypeScript are not judged" >&2
	@.venv/bin/python -m $(if $(MODEL),tests.tasks --model $(MODEL) --runs $(or $(RUNS),1) \
		$(if $(PEER),--peer $(PEER)),tests.proofs tasks) $(ARGS)

mutants: set-up ## Change 60 random places of eight packages; their own tests must notice; docs/notes/reliability.md
	@.venv/bin/python -m tests.proofs mutants $(ARGS)

projects: set-up ## Fetch real projects and prove changes of them; the table in docs/notes/trial-runs.md
	@.venv/bin/python -m tests.proofs projects $(ARGS)

agents: set-up ## Install real agents into build/agents, for tests/real_agents and `make bench ARGS=agents`
	@npm install --prefix build/agents --no-audit --no-fund --loglevel=error \
		@anthropic-ai/claude-code @openai/codex opencode-ai @google/gemini-cli \
		@agentclientprotocol/claude-agent-acp @agentclientprotocol/codex-acp
	@for python in $(PYTHON) python3.12 $(HOME)/.pyenv/versions/3.12.*/bin/python .venv/bin/python; do \
		$$python -c 'import venv' 2>/dev/null && break; done; \
	for agent in mistral-vibe aider-chat; do \
		test -x build/agents/$$agent/bin/python || $$python -m venv build/agents/$$agent; \
		build/agents/$$agent/bin/python -m pip install --quiet --disable-pip-version-check $$agent || \
			echo "$$agent is left out: pip could not install it (mistral-vibe needs Python 3.12)" >&2; done

local: local-server ## A real server with a tiny model of our own; the table in docs/notes/local-models.md
	@.venv/bin/python -m tests.proofs local $(ARGS)

local-server: set-up ## Build that server, for a quarter of an hour, once
	@test -x build/local-server/bin/python || .venv/bin/python -m venv build/local-server
	@build/local-server/bin/python -c 'import llama_cpp.server.app' 2>/dev/null || \
		build/local-server/bin/python -m pip install --quiet 'llama-cpp-python[server]'

cov: set-up ## Run the tests and say which lines they do not reach
	@.venv/bin/python -m pytest -p pytest_cov.plugin --cov --cov-report=term-missing:skip-covered $(ARGS)

LOCKED = uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal pyproject.toml

lock: ## Write requirements.lock and requirements-slim.lock from pyproject.toml (needs uv)
	$(LOCKED) --extra dev --extra mcp --extra acp --extra cluster --extra grammars -o requirements.lock
	@mkdir -p build && printf '%s\n' "litellm; python_version < '0'" "pillow; python_version < '0'" >build/left-out.txt
	$(LOCKED) --override build/left-out.txt --constraint requirements.lock -o requirements-slim.lock

newest: set-up ## The newest versions that pyproject.toml allows, in an environment of their own: the screen's tests there
	@test -x build/newest/bin/python || .venv/bin/python -m venv build/newest
	@build/newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade \
		--upgrade-strategy eager --editable '.[dev,mcp,acp,cluster,grammars]'
	@build/newest/bin/python -m pytest $(or $(ARGS),tests/ui)

models: set-up ## Make the table of models from the newest litellm of the package registry
	@test -x build/models-table/bin/python || .venv/bin/python -m venv build/models-table
	@rm -f build/models-table/*.whl
	@build/models-table/bin/python -m pip download --quiet --disable-pip-version-check --no-deps \
		--only-binary=:all: --dest build/models-table litellm
	@PYTHONPATH=tests .venv/bin/python tests/support/model_table.py build/models-table/litellm-*.whl

snapshots: set-up ## Draw the pictures that the screen is compared with
	@PYTHONPATH=tests .venv/bin/python tests/support/snapshots.py
	@PYTHONPATH=tests .venv/bin/python tests/support/scenes.py

picture: set-up ## Redraw the README's two pictures
	@.venv/bin/python tests/support/picture.py

site: set-up ## Build the documentation as a site in build/html and check its links
	@.venv/bin/python tests/support/settings_page.py
	@test -x build/site/bin/mkdocs || { .venv/bin/python -m venv build/site && \
		build/site/bin/python -m pip install --quiet --disable-pip-version-check mkdocs-material; }
	@NO_MKDOCS_2_WARNING=1 build/site/bin/mkdocs build --quiet

sbom: set-up ## Write the components (CycloneDX) and licences of an installation to build/sbom.json and build/licences.md
	@test -x build/sbom/bin/cyclonedx-py || { .venv/bin/python -m venv build/sbom && \
		build/sbom/bin/python -m pip install --quiet --disable-pip-version-check cyclonedx-bom pip-licenses; }
	@.venv/bin/python -m venv --clear build/installed
	@sed -n 's/ *\\$$//; /^[a-z0-9]/p' requirements.lock >build/versions.txt
	@build/installed/bin/python -m pip install --quiet --disable-pip-version-check --constraint build/versions.txt \
		'.[mcp,acp,cluster,grammars]'
	@build/installed/bin/python -m pip uninstall --quiet --yes pip
	@build/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --of JSON \
		--output-file build/sbom.json build/installed/bin/python
	@build/sbom/bin/pip-licenses --python build/installed/bin/python --format markdown --order license \
		--output-file build/licences.md

clean: ## Remove all that is not in the repository and can be made again
	rm -rf .venv build dist htmlcov .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
