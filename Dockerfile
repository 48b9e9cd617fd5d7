# The page and the command line on a CPU: docker build -t rallebench . (docs/containers.md)
FROM python:3.11-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 HNSWLIB_NO_NATIVE=1
RUN python -m venv /opt/rallebench
WORKDIR /source
COPY requirements.txt ./
# The build of torch for CPUs, then everything for run time of the lock.
RUN sed '/^# For the tests/,$d' requirements.txt > run-time.txt \
    && /opt/rallebench/bin/pip install --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' run-time.txt)" \
    && /opt/rallebench/bin/pip install -r run-time.txt
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY LICENSES LICENSES
COPY prompts prompts
COPY rallebench rallebench
RUN /opt/rallebench/bin/pip install --no-deps .

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="rallebench" \
      org.opencontainers.image.licenses="Apache-2.0 AND CC-BY-SA-4.0"
COPY --from=build /opt/rallebench /opt/rallebench
RUN useradd --uid 1000 --create-home rallebench \
    && install -d -o rallebench -g rallebench /workspace
ENV PATH=/opt/rallebench/bin:$PATH \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    OMP_WAIT_POLICY=PASSIVE TOKENIZERS_PARALLELISM=false \
    MPLCONFIGDIR=/tmp/matplotlib GRADIO_TEMP_DIR=/tmp/gradio
USER rallebench
WORKDIR /workspace
VOLUME /workspace
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/', timeout=8).close()"]
ENTRYPOINT ["rallebench"]
CMD ["ui", "--host", "0.0.0.0", "--no-browser"]
