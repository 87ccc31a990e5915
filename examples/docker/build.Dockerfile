# syntax=docker/dockerfile:1
# Builds the bundles of a project, and leaves nothing but them:
#
#   docker build -f build.Dockerfile --output dist .
#
# The context is the project's folder: ingot.toml, its models, and Ingot's wheels (`make dist`) in wheels/.
FROM python:3.12-slim AS build
WORKDIR /project
COPY wheels wheels
RUN python -m pip install --no-cache-dir wheels/ingot_runtime-*.whl wheels/ingot_compiler-*.whl
COPY . .
# The cache and the key that seals it live beside each other in a mount, so that the next `docker build` finds both.
ENV XDG_CACHE_HOME=/cache XDG_STATE_HOME=/cache/state
RUN --mount=type=cache,target=/cache ingot build

FROM scratch
COPY --from=build /project/dist /
