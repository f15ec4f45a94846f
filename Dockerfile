# The service in a container: docker build -t primaldepth . && docker run --rm -p 7860:7860 primaldepth
# For a GPU: docker run --gpus all ... A machine without one needs no CUDA, see docs/serve.md.
FROM python:3.11-slim AS build
ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/primaldepth
ENV PATH=/opt/primaldepth/bin:$PATH
WORKDIR /source
COPY constraints.txt ./
RUN pip install -c constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install -c constraints.txt '.[app,fast,mat]'

FROM python:3.11-slim
# OpenMP for torch and numba; a compiler for the kernels of GPUs; tini passes SIGTERM on and waits for the worker.
RUN apt-get update && apt-get install -y --no-install-recommends libgomp1 gcc libc6-dev tini \
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
