# The package with its locked libraries, for a user without rights. First `make dist`; then `docker build -t ep-bench .`
# and `docker run --rm -v "$PWD":/work ep-bench run quickstart`.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements/run.txt release/install.sh dist/*.whl ./
RUN sh install.sh /opt/ep-bench

FROM python:3.11-slim
COPY --from=build /opt/ep-bench /opt/ep-bench
RUN useradd --create-home --uid 1000 ep-bench && mkdir /work && chown ep-bench /work
USER ep-bench
WORKDIR /work
ENV PATH=/opt/ep-bench/bin:$PATH
ENTRYPOINT ["ep-bench"]
