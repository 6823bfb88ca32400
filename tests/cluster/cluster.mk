# A real Kubernetes for the tests. Included by the Makefile; see tests/cluster/__init__.py.
#
#   CLUSTER=current|kind|built   the way to have one; absent: what is there, and `current` only after asking
#   THUNDERAGENT_CLUSTER_DIR=    where all of it lies (default .cache/cluster)

# The standard library is enough for it, so no .venv has to be there.
CLUSTER_COMMAND = "$$(scripts/python)" -m tests.cluster
export CLUSTER CONFIRM CLUSTER_IMAGES CLUSTER_NETWORK_POLICIES THUNDERAGENT_CLUSTER_DIR

.PHONY: cluster-up
cluster-up: ## Bring up a Kubernetes for the tests; CLUSTER=current, kind or built chooses how
	$(CLUSTER_COMMAND) up

.PHONY: cluster-down
cluster-down: ## Remove it, and all that it left on the machine
	@$(CLUSTER_COMMAND) down

.PHONY: cluster-env
cluster-env: ## Print shell commands that make kubectl and helm use it
	@$(CLUSTER_COMMAND) env

.PHONY: cluster-image
cluster-image: ## Build an image and load it: make cluster-image IMAGE=thunderagent.test/app:1 CONTEXT=path
	@$(CLUSTER_COMMAND) image '$(IMAGE)' '$(CONTEXT)' $(ARGS)

.PHONY: cluster-check
cluster-check: setup ## See that it does what the end-to-end tests rely on
	CLUSTER_REQUIRED=1 $(BIN)/python -m pytest -m cluster tests/cluster $(ARGS)

.PHONY: e2e-images
e2e-images: setup ## Build the images of the end-to-end tests and give them to the cluster; minutes the first time
	$(BIN)/python -m tests.e2e.images

.PHONY: e2e
e2e: setup e2e-images ## All of ThunderAgent on that cluster, about half an hour; ARGS goes to pytest: make e2e ARGS='-k pause'
	CLUSTER_REQUIRED=1 scripts/attempts $(ATTEMPTS) $(BIN)/python -m pytest -m 'e2e or apiserver' tests/apiserver tests/e2e -rP --durations=10 $(ARGS)

.PHONY: chaos
chaos: setup ## Faults at random on that cluster for SECONDS=1200 or as many as told, drawn by SEED=1; ARGS goes to pytest
	CLUSTER_REQUIRED=1 CHAOS_SECONDS='$(or $(SECONDS),1200)' CHAOS_SEED='$(or $(SEED),1)' scripts/attempts $(ATTEMPTS) \
		$(BIN)/python -m pytest -m chaos tests/e2e -rP $(ARGS)

clean: cluster-down
