# The package with its locked libraries, for a user without rights. First `make dist`; then `docker build -t ep-bench .`
# and `docker run --rm --user "$(id -u):$(id -g)" -v "$PWD":/work ep-bench run quickstart`.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements/run.txt release/install.sh dist/*.whl ./
RUN sh install.sh /opt/ep-bench

FROM python:3.11-slim
COPY --from=build /opt/ep-bench /opt/ep-bench
# Caches are in the home folder, which any user of `--user` may write.
RUN useradd --create-home --uid 1000 ep-bench && chmod 1777 /home/ep-bench && mkdir /work && chown ep-bench /work
USER ep-bench
WORKDIR /work
ENV HOME=/home/ep-bench PATH=/opt/ep-bench/bin:$PATH
ENTRYPOINT ["ep-bench"]
