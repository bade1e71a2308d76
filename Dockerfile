# Boathouse's two images: `task` runs in the task pods, `operator` is the operator and scheduler.
#
#   docker build --target task     -t boathouse-task:dev .
#   docker build --target operator -t boathouse-operator:dev .
#
# BASE is any Debian-like image with Python >= 3.11, its venv module and libstdc++. buildah builds this file too, where no
# image registry is reached: on a base made by mmdebstrap (ca-certificates, libstdc++6, python3, python3-venv, usr-is-merged).
#
# A network with its own package index or certificate authority: two optional secrets, which no layer keeps.
#   --secret id=pip.conf,src=pip.conf    pip's configuration (index-url, proxy, cert = /run/secrets/ca.crt)
#   --secret id=ca.crt,src=bundle.pem    the authorities that pip.conf names
# 3.11, because mrjob and other code of Hadoop Streaming's time needs distutils and pipes, which later ones lack.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS base
ENV LANG=C.UTF-8 PYTHONUNBUFFERED=1 PATH=/opt/boathouse/bin:$PATH
# The user by name too: scripts ask getpwuid() who they are. Its home is the working folder of a task.
RUN echo 'boathouse:x:10001:10001::/work:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'boathouse:x:10001:' >>/etc/group \
 && install -d -o 10001 -g 10001 /work

# pip lives in an environment of its own, so that the images have none.
FROM base AS builder
ENV PIP_CONFIG_FILE=/run/secrets/pip.conf PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ONLY_BINARY=:all: PIP_REQUIRE_HASHES=1
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/boathouse
WORKDIR /src
COPY requirements/build.txt requirements/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    /opt/pip/bin/pip install --quiet --requirement requirements/build.txt

# The wheel of this project: no network, no isolation, only the locked build backend.
FROM builder AS wheel
COPY pyproject.toml README.md LICENSE ./
COPY policies policies
COPY operator operator
RUN PIP_ONLY_BINARY= PIP_REQUIRE_HASHES= /opt/pip/bin/pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir /dist .

FROM builder AS task-files
COPY requirements/task.txt requirements/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    /opt/pip/bin/pip --python /opt/boathouse/bin/python install --quiet --requirement requirements/task.txt
COPY --from=wheel /dist /dist
# The runtime imports nothing of the operator: leaving the rest out keeps that true.
RUN PIP_REQUIRE_HASHES= /opt/pip/bin/pip --python /opt/boathouse/bin/python install --quiet --no-deps --no-index /dist/*.whl \
 && rm -r /opt/boathouse/lib/python3*/site-packages/boathouse /opt/boathouse/lib/python3*/site-packages/boathouse_policies \
          /opt/boathouse/lib/python3*/site-packages/boathouse_cli /opt/boathouse/bin/boathouse /opt/boathouse/bin/kubectl-boathouse \
 && /opt/boathouse/bin/python -c 'import boathouse_task.__main__'

FROM builder AS operator-files
COPY requirements/operator.txt requirements/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    /opt/pip/bin/pip --python /opt/boathouse/bin/python install --quiet --requirement requirements/operator.txt \
 && find /opt/boathouse -path '*/numpy/*' -type d -name tests -prune -exec rm -r {} +
COPY --from=wheel /dist /dist
RUN PIP_REQUIRE_HASHES= /opt/pip/bin/pip --python /opt/boathouse/bin/python install --quiet --no-deps --no-index /dist/*.whl \
 && rm -r /opt/boathouse/lib/python3*/site-packages/boathouse_cli /opt/boathouse/bin/boathouse /opt/boathouse/bin/kubectl-boathouse \
 && /opt/boathouse/bin/python -c 'import aiohttp, cryptography, kopf, numpy, pycurl, pydantic, boathouse'

FROM base AS task
LABEL org.opencontainers.image.title="boathouse-task" \
      org.opencontainers.image.description="Runs one task of a MapReduce job with Hadoop Streaming's contract" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=task-files /opt/boathouse /opt/boathouse
# Only /work is writable in a task pod.
ENV HOME=/work TMPDIR=/work
WORKDIR /work
USER 10001:10001
CMD ["boathouse-task"]

FROM base AS operator
LABEL org.opencontainers.image.title="boathouse-operator" \
      org.opencontainers.image.description="Runs Spark and MapReduce side by side on Kubernetes, and schedules their pods" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=operator-files /opt/boathouse /opt/boathouse
WORKDIR /tmp
USER 10001:10001
ENTRYPOINT ["python", "-m", "boathouse"]
