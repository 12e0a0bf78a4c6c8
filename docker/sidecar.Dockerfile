# The sidecar, with the S3 endpoint, the file server and the command `stoker` beside it. From a checkout: docker build -f docker/sidecar.Dockerfile -t stoker-sidecar .
# The builder must skip unused stages, as buildah and BuildKit (the default since Docker 23) do.
# For a binary that is built already: --target prebuilt, with a context folder that contains only stoker-sidecar, stoker-s3, stoker-files and stoker.
ARG BASE_IMAGE=debian:bookworm-slim

# The same stage in all Dockerfiles, so that builders and nodes store this layer once.
FROM ${BASE_IMAGE} AS runtime
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libboost-system1.74.0 libcpprest2.10 libcurl4 \
        libexpat1 libfmt9 libgrpc++1.51 libprotobuf32 libyaml-cpp0.7 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/stoker-sidecar"]

FROM runtime AS prebuilt
COPY stoker-sidecar stoker-s3 stoker-files stoker /usr/local/bin/

FROM ${BASE_IMAGE} AS build
WORKDIR /src
COPY tools/deps.sh tools/deps.sh
RUN tools/deps.sh build
COPY . .
RUN cmake --preset release -DSTOKER_TESTS=OFF \
    && cmake --build build/release --target stoker-sidecar stoker-s3 stoker-files stoker \
    && strip build/release/bin/stoker-sidecar build/release/bin/stoker-s3 build/release/bin/stoker-files build/release/bin/stoker

FROM runtime
COPY --from=build /src/build/release/bin/stoker-sidecar /src/build/release/bin/stoker-s3 /src/build/release/bin/stoker-files /src/build/release/bin/stoker /usr/local/bin/
