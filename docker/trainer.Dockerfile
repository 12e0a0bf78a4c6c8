# The example trainer: PyTorch on the CPU, boto3, Stoker's Python client, the scripts of docs/examples.
# From a checkout: docker build -f docker/trainer.Dockerfile -t stoker-trainer .
ARG BASE_IMAGE=debian:trixie-slim

FROM ${BASE_IMAGE} AS torch
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-numpy python3-pil python3-torch \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log /usr/share/doc /usr/lib/libtorch-test

FROM ${BASE_IMAGE} AS wheel
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake g++ libexpected-dev libfmt-dev ninja-build pybind11-dev \
        python3-dev python3-pip python3-pybind11 python3-scikit-build-core
COPY cmake /src/cmake
COPY common /src/common
COPY proto /src/proto
COPY client /src/client
RUN python3 -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels /src/client \
    && python3 -m pip install --no-deps --no-index --target /site /wheels/*.whl

FROM torch
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-boto3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log /usr/share/doc
COPY --from=wheel /site /usr/local/lib/python3.13/dist-packages
RUN python3 -B -c 'import stoker.torch'
COPY docs/examples /opt/stoker/examples
ENV PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /opt/stoker/examples
CMD ["python3"]
