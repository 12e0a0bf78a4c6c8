# The node program. From a checkout: docker build -f docker/node.Dockerfile -t stoker-node .
# The builder must leave out stages that nothing needs, as buildah and BuildKit do (Docker's own since 23).
# Around a binary that is built already: --target prebuilt, with a folder that holds just stoker-node as context.
ARG BASE_IMAGE=debian:bookworm-slim

# The same stage in all programs' files, so that builders and nodes keep it once.
FROM ${BASE_IMAGE} AS runtime
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libboost-system1.74.0 libcpprest2.10 libcurl4 \
        libexpat1 libfmt9 libgrpc++1.51 libprotobuf32 libyaml-cpp0.7 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/stoker-node"]

FROM runtime AS prebuilt
COPY stoker-node /usr/local/bin/stoker-node

FROM ${BASE_IMAGE} AS build
WORKDIR /src
COPY tools/deps.sh tools/deps.sh
RUN tools/deps.sh build
COPY . .
RUN cmake --preset release -DSTOKER_TESTS=OFF \
    && cmake --build build/release --target stoker-node \
    && strip build/release/bin/stoker-node

FROM runtime
COPY --from=build /src/build/release/bin/stoker-node /usr/local/bin/stoker-node
