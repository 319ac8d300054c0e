# syntax=docker/dockerfile:1
# Three images: `serve` (the default) is the program alone, `demo` holds the demo model as well, `ray` has Ray Serve and
# python/valora_serve beside it (docs/deploy.md).
#   docker build --build-arg PIP_EXTRA_INDEX_URL=… -t valora .     the argument: PyTorch's index of CPU wheels
#   docker run -p 8000:8000 -v /path/to/model:/model:ro valora serve --model /model --host 0.0.0.0

FROM debian:12 AS build
# Without it pip takes PyPI's torch, which is built for CUDA.
ARG PIP_EXTRA_INDEX_URL=
WORKDIR /valora
COPY tools/setup tools/requirements.txt tools/requirements-sources.txt tools/requirements-sources-build.txt \
    tools/debian-packages.txt tools/
RUN tools/setup
COPY . .
RUN --mount=type=cache,target=/root/.cache/ccache make install PREFIX=/usr/local DESTDIR=/image

FROM debian:12-slim AS runtime
# What the program links (tests/docs/test_container.py compares), curl for the health check, certificates for media URLs.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends \
    ca-certificates curl libavcodec59 libavformat59 libavif15 libavutil57 libcurl4 libfmt9 libgcc-s1 libheif1 libjemalloc2 libjpeg62-turbo libmosquitto1 \
    libpcre2-8-0 libpng16-16 libprometheus-cpp-core1.0 libspdlog1.10 libssl3 libstdc++6 libswscale6 libtiff6 libutf8proc2 libwebpdemux2 libxxhash0 \
    libyaml-cpp0.7 \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --uid 10001 --create-home --home-dir /var/lib/valora valora
COPY --from=build /image/usr/local /usr/local
USER 10001
WORKDIR /var/lib/valora
EXPOSE 8000
# With --ssl-certfile, give the container a health check that asks https.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10m --start-interval=2s \
  CMD ["curl", "-fsS", "-o", "/dev/null", "http://127.0.0.1:8000/health"]
ENTRYPOINT ["valora"]

FROM runtime AS ray
USER 0
# wget and bash are for KubeRay's probes.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends bash python3 python3-venv wget && rm -rf /var/lib/apt/lists/*
COPY python/valora_serve /usr/local/share/valora_serve
RUN python3 -m venv /opt/ray && /opt/ray/bin/pip install --no-cache-dir /usr/local/share/valora_serve
ENV PATH=/opt/ray/bin:$PATH RAY_USAGE_STATS_ENABLED=0
USER 10001
ENTRYPOINT []
CMD ["ray", "--help"]

FROM runtime AS demo
COPY demo/model demo/model
COPY demo/adapters demo/adapters
COPY demo/samples demo/samples
COPY demo/manifest.json demo/
CMD ["serve", "--model", "demo/model", "--served-model-name", "valora-demo", "--manifest", "demo/manifest.json", \
     "--allowed-local-media-path", "demo", "--host", "0.0.0.0"]

FROM runtime AS serve
CMD ["serve", "--help"]
