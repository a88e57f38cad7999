# limi with the model kinds that need no GPU:
#   docker build -t limi .
#   docker run --rm -v "$PWD:/work" limi test people.csv --model onnx:model.onnx --protected sex
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY limi limi
RUN python -m venv /opt/limi \
    && /opt/limi/bin/pip install --no-cache-dir -c constraints.txt ".[onnx,skops,boosters,remote,tables]"

FROM python:3.12-slim
# LightGBM and XGBoost need OpenMP.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 limi
COPY --from=build /opt/limi /opt/limi
ENV PATH="/opt/limi/bin:$PATH"
USER limi
WORKDIR /work
ENTRYPOINT ["limi"]
CMD ["--help"]
