# Everything that requirements.lock names, with its hashes, for the commands of README.md:
#
#   docker build --tag paperlib .
#   docker run --rm paperlib                # make test
#   docker run --name built paperlib make figures
#   docker cp built:/srv/paperlib/figures figures-in-docker
FROM python:3.11-slim-bookworm

# Make runs the commands; a test asks Git which files belong to the project.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git make \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home reviewer && install --directory --owner=reviewer /srv/paperlib
USER reviewer
WORKDIR /srv/paperlib

# The environment comes first: an edit of the sources does not install it again.
COPY --chown=reviewer requirements.lock pyproject.toml Makefile README.md LICENSE ./
COPY --chown=reviewer .ci .ci
RUN make .venv/.ready

COPY --chown=reviewer . .
CMD ["make", "test"]
