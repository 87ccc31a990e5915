# syntax=docker/dockerfile:1
# An image that runs one bundle: Python, numpy, the loader, the bundle. It has no shell, no pip, no compiler.
#
#   docker build -f device.Dockerfile --build-arg BUNDLE=dist/cnn.ingot -t cnn .
#   docker run --rm -v "$PWD/data:/data:ro" cnn run /bundle.ingot --inputs /data/cnn.npz
#
# Python of Debian 12 is 3.11 in both images: numpy's machine code is made for one version.
FROM python:3.11-slim-bookworm AS loader
WORKDIR /install
COPY wheels wheels
RUN python -m pip install --no-cache-dir --target /app wheels/ingot_runtime-*.whl

FROM gcr.io/distroless/python3-debian12:nonroot
COPY --from=loader /app /app
ARG BUNDLE
COPY ${BUNDLE} /bundle.ingot
ENV PYTHONPATH=/app
ENTRYPOINT ["python3", "-m", "ingot_runtime"]
CMD ["inspect", "/bundle.ingot"]
