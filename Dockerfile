# The service in a container. The base is a Python 3.11 or 3.12 image of Debian, named with its digest:
#   docker pull python:3.11-slim
#   docker build --build-arg BASE=$(docker inspect --format '{{index .RepoDigests 0}}' python:3.11-slim) -t primaldepth .
# No digest stands here, because none could be checked where this file was written. A name without one is refused.
ARG BASE
FROM ${BASE} AS build
ARG BASE
RUN case "$BASE" in *@sha256:*) ;; *) echo "BASE=$BASE: give the base image with its digest, NAME@sha256:..." >&2; exit 1;; esac
# torch: with CUDA, from the package index; torch-cpu: without, its wheel lies in requirements/ (docs/serve.md).
ARG TORCH=torch
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /source
COPY requirements ./requirements
# The pip of the base installs the locked pip and build tools; only these are used from then on.
RUN python -m venv /opt/build && /opt/build/bin/pip install --require-hashes -r requirements/build.txt \
 && python -m venv --without-pip /opt/primaldepth
RUN /opt/build/bin/pip --python /opt/primaldepth/bin/python install --require-hashes --find-links requirements \
    -r requirements/serve.txt -r requirements/$TORCH.txt
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
 && /opt/build/bin/pip --python /opt/primaldepth/bin/python install --no-deps --no-index dist/*.whl

FROM ${BASE}
ARG TORCH=torch
# OpenMP for torch and numba; tini passes SIGTERM on and waits for the worker. A compiler is only in images with
# CUDA: Triton compiles the launchers of its GPU kernels with it when the first frame comes.
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 tini $([ "$TORCH" = torch-cpu ] || echo gcc libc6-dev) \
 && rm -rf /var/lib/apt/lists/* && useradd --create-home --uid 10001 primaldepth
COPY --from=build /opt/primaldepth /opt/primaldepth
ENV PATH=/opt/primaldepth/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/numba
USER primaldepth
WORKDIR /home/primaldepth
EXPOSE 7860
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=120s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:7860/healthz', timeout=4)"]
ENTRYPOINT ["tini", "--", "primaldepth", "serve", "--host", "0.0.0.0"]
