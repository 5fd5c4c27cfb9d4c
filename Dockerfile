# One image for all of the stack: Airflow, Spark and the Kafka broker, from the same lock as everywhere.
FROM python:3.11-slim-bookworm

RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

ENV PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    HEADWATER_HOME=/opt/headwater \
    HEADWATER_CACHE=/opt/headwater-cache \
    PYTHONPATH=/opt/headwater/include:/opt/headwater/jobs:/opt/headwater/plugins

WORKDIR /opt/headwater
COPY requirements.lock requirements-celery.lock ./
RUN pip install --require-hashes -r requirements.lock
# Airflow's provider for Celery, where docker-compose.celery.yaml asks for it.
ARG CELERY=
RUN [ -z "$CELERY" ] || pip install --require-hashes --no-deps -r requirements-celery.lock

# The jars are in the image, and the archive of the classes that drivers share: containers start without a download.
COPY include include
RUN python -m headwater.runtime.jars && python -m headwater.runtime.shared_classes

COPY pyproject.toml README.md ./
COPY jobs jobs
COPY plugins plugins
COPY dags dags
RUN pip install --no-deps --no-build-isolation -e . \
    && useradd --uid 50000 --create-home headwater \
    && mkdir -p /data /opt/airflow /opt/airflow-passwords /opt/spark-conf \
    && chown headwater: /data /opt/airflow /opt/airflow-passwords /opt/spark-conf
USER headwater
# Spark starts its pods on Kubernetes with `driver` and `executor`; every other command is run as it is.
ENTRYPOINT ["tini", "--", "python", "-m", "headwater.runtime.pod"]
