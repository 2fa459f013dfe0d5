# The image of posencd: built and tested on Debian, then only what the binary needs on an empty one: no shell, no
# package manager, nothing to write to. `make docker` builds it, `make image-check` tries it.

# The web page, as the two files that the daemon is linked with. What it is built with stays until it changes.
FROM debian:bookworm-slim AS web
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates nodejs npm \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src/server/www
COPY server/www/package.json server/www/package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev
COPY server/www ./
RUN node build.mjs /src/build/www && node embed.mjs /src/build/www

FROM debian:bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev make check libmicrohttpd-dev libjansson-dev \
        zlib1g-dev libpng-dev libopenblas-pthread-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Makefile LICENSE ./
COPY lib lib
RUN make lib
COPY server server
COPY config config
COPY --from=web /src/build/site.c /src/build/site.bin build/
RUN make WITH_WEB=made
COPY tests tests
RUN make WITH_WEB=made check-quick

# The root of the image: the binary, the libraries that ldd names, the licences of all of them, a user.
# docker/rootfs ends by running the binary inside it, so that a missing file fails the build, not the start.
COPY docker/rootfs docker/rootfs
RUN docker/rootfs /rootfs build/release/posencd

FROM scratch
COPY --from=build /rootfs/ /
ARG VERSION=0.2.0
LABEL org.opencontainers.image.title="posenc" \
      org.opencontainers.image.description="Transformer positional encodings over HTTP: exact, deterministic" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.licenses="MIT"
ENV POSENC_LISTEN=[::]:8080 \
    POSENC_ADMIN_LISTEN=[::]:9090
EXPOSE 8080 9090
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/usr/bin/posencd", "--healthcheck"]
ENTRYPOINT ["/usr/bin/posencd"]
