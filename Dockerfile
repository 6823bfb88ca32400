# The images of ThunderAgent. Each final stage holds Python, what it runs, and no tool to build with.
#
#   docker build --target=agent    .   the agent: build FROM it and add a handler
#   docker build --target=operator .   the operator, which scales pools
#   docker build --target=dynamodb .   the embedded DynamoDB, for demos and tests alone
#
# All of them run as a user without a name and with a read-only root file system.

FROM python:3.11-slim AS base
ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=/app \
    PYTHONUNBUFFERED=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore
WORKDIR /app
# Published Python images have no bytecode of the standard library, and a read-only root file system keeps none: each process
# would compile anew the 240 modules of it that an agent imports, which takes four times as long as loading them.
RUN python -m compileall -q "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

# --- what is copied into the final stages ---------------------------------------------------------------------------------

FROM base AS wheel
COPY requirements/build.txt requirements/
RUN pip install --quiet --require-hashes --requirement requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY thunderagent thunderagent
RUN pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . \
 && pip install --quiet --no-deps --prefix /made /wheels/*.whl

FROM base AS agent-packages
COPY requirements/agent.txt requirements/
RUN pip install --quiet --require-hashes --prefix /made --requirement requirements/agent.txt

FROM base AS operator-packages
COPY requirements/operator.txt requirements/
RUN pip install --quiet --require-hashes --prefix /made --requirement requirements/operator.txt

FROM base AS local-packages
COPY requirements/local.txt requirements/
RUN pip install --quiet --require-hashes --prefix /made --requirement requirements/local.txt

FROM base AS controller
COPY controller controller
RUN python -m compileall -q controller

# --- the images -----------------------------------------------------------------------------------------------------------

FROM base AS operator
ARG VERSION=dev
LABEL org.opencontainers.image.title="thunderagent-operator" \
      org.opencontainers.image.description="Scales the agents of ThunderAgentPools on the backlog of their task tables" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=operator-packages /made /usr/local
COPY --from=wheel /made /usr/local
COPY --from=controller /app/controller controller
USER 10001:10001
EXPOSE 8080
ENTRYPOINT ["python", "-m", "controller"]

FROM base AS dynamodb
ARG VERSION=dev
LABEL org.opencontainers.image.title="thunderagent-dynamodb" \
      org.opencontainers.image.description="A DynamoDB that keeps nothing, for demos and tests of ThunderAgent" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=local-packages /made /usr/local
COPY --from=wheel /made /usr/local
USER 10001:10001
EXPOSE 8000
ENTRYPOINT ["thunderagent"]
CMD ["dynamodb", "--host", "0.0.0.0"]

# The last one is what `docker build .` makes.
FROM base AS agent
ARG VERSION=dev
LABEL org.opencontainers.image.title="thunderagent-agent" \
      org.opencontainers.image.description="Runs background tasks from a DynamoDB table; build FROM it and add a handler" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
COPY --from=agent-packages /made /usr/local
COPY --from=wheel /made /usr/local
USER 10001:10001
EXPOSE 9464
ENTRYPOINT ["thunderagent"]
