# One image for webserver, daemon, code location, runs and Ray: `docker build -t dataflow-assets .`
FROM python:3.11-slim-bookworm AS build

ARG EXTRAS=chinese,dedup,html,language,litellm,postgres,ray,text
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY setup.cfg pyproject.toml constraints.txt README.md LICENSE ./
COPY dataflow_assets ./dataflow_assets
RUN python -m venv /opt/venv \
    && /opt/venv/bin/pip install -c constraints.txt ".[${EXTRAS}]" kubernetes==36.0.2 \
    # They want the very Dagster of their release; docs/cluster.md says why that is another one.
    && /opt/venv/bin/pip install --no-deps dagster-postgres==0.29.27 dagster-k8s==0.29.27

FROM python:3.11-slim-bookworm

RUN useradd --uid 10001 --create-home dataflow \
    && install -d -o dataflow -g dataflow /data /pipelines /opt/dagster
COPY --from=build /opt/venv /opt/venv
COPY --chown=dataflow:dataflow deploy/dagster.yaml deploy/workspace.yaml /opt/dagster/
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONWARNINGS="ignore:Found version mismatch" \
    DAGSTER_HOME=/opt/dagster \
    DAGSTER_DISABLE_TELEMETRY=1 \
    DAGSTER_EMIT_PARTITION_SUBSET_IN_PLANNED_EVENTS=true \
    DATAFLOW_ROOT=/data \
    DATAFLOW_PIPELINES=/pipelines
USER 10001
WORKDIR /pipelines
EXPOSE 4000
CMD ["dagster", "code-server", "start", "-h", "0.0.0.0", "-p", "4000", "-m", "dataflow_assets.definitions"]
