"""Places that a folder describes: found, offered once, and added to the person's settings."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import msgspec
import pytest
from support.sessions import open_session

from tui_agent.errors import SessionError
from tui_agent.places.detection import found_in
from tui_agent.places.place import place_of
from tui_agent.session.session import Session
from tui_agent.settings.folders import user_folders
from tui_agent.settings.loading import load
from tui_agent.settings.schema import PlaceSettings

COMPOSE = """\
# the services
services:
  db:
    image: postgres:17
    volumes:
      - data:/var/lib/postgresql
  web:
    build: .
    command: ["./serve"]
    volumes:
      - .:/srv/app
      - ./cache:/cache
  worker:
    build: .
volumes:
  data:
"""


#: As projects write them: name of the file, its text, and the place.
SAMPLES = [
    (
        "compose.yaml",
        """\
name: shop
x-common: &common
  restart: unless-stopped
services:  # all of them
  "db":
    <<: *common
    image: "postgres:17-alpine"
    environment: {POSTGRES_PASSWORD: example}
    volumes: ["pgdata:/var/lib/postgresql/data"]
  api: &api # Django
    <<: *common
    build: {context: ., target: dev}
    depends_on:
      db: {condition: service_healthy}
    volumes:
      - type: volume
        source: media
        target: /media
      - type: bind
        source: .
        target: /code
    ports: ["8000:8000"]
volumes:
  pgdata: {}
""",
        "api",
        "docker compose run --rm -T -v {view}:/code -w /code api sh -c {command}",
    ),
    (
        "docker-compose.yml",
        """\
version: '3.8'
services:
  redis: {image: redis:7}
  'web-app':
    build: ./docker/web
    working_dir: "/srv/www"
    command: bundle exec rails s
  jobs:
    build: .
    volumes:
      - "${PWD}:/jobs:cached"
""",
        "jobs",
        "docker compose run --rm -T -v {view}:/jobs -w /jobs jobs sh -c {command}",
    ),
    (
        "compose.yml",
        "services:\n  site:\n    working_dir: /usr/src/app\n    build:\n      dockerfile: Dockerfile.dev\n",
        "site",
        "docker compose run --rm -T -v {view}:/usr/src/app -w /usr/src/app site sh -c {command}",
    ),
    (
        ".devcontainer/devcontainer.json",
        """\
// For format details, see https://aka.ms/devcontainer.json. For config options, see the
// README at: https://github.com/devcontainers/templates/tree/main/src/python
{
	"name": "Python 3",
	"image": "mcr.microsoft.com/devcontainers/python:1-3.12-bookworm", // or 3.13
	"features": {"ghcr.io/devcontainers/features/node:1": {},},
	/* "forwardPorts": [5000], */
	"workspaceFolder": "/src/${localWorkspaceFolderBasename}",
	"postCreateCommand": "pip3 install --user -r requirements.txt", // see http://x.test/
}
""",
        "dev",
        "docker run --rm -i -v {view}:/workspace -w /workspace mcr.microsoft.com/devcontainers/python:1-3.12-bookworm "
        "sh -c {command}",
    ),
    (
        ".devcontainer/backend/devcontainer.json",
        '{"dockerComposeFile": ["../../compose.yaml", "compose.dev.yaml"], "service": "api",\n'
        ' "workspaceFolder": "/workspaces/shop", "shutdownAction": "stopCompose"}\n',
        "dev",
        "docker compose -f compose.yaml -f .devcontainer/backend/compose.dev.yaml run --rm -T "
        "-v {view}:/workspaces/shop -w /workspaces/shop api sh -c {command}",
    ),
    (
        "Containerfile",
        """\
# syntax=docker/dockerfile:1
ARG NODE=22
FROM node:${NODE}-slim AS build
ENTRYPOINT ["docker-entrypoint.sh"]
WORKDIR "/usr/src/app/"
COPY package*.json ./
RUN npm ci && \\
    npm cache clean --force
FROM gcr.io/distroless/nodejs22 AS run
WORKDIR $HOME
COPY --from=build /usr/src/app /usr/src/app
ENTRYPOINT ["/nodejs/bin/node", "server.js"]
""",
        "my-project",
        "docker run --rm -i --entrypoint sh -v {view}:/usr/src/app -w /usr/src/app my-project -c {command}",
    ),
]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on a machine with an engine, which is never started."""
    (tmp_path / "bin").mkdir()
    engine = tmp_path / "bin" / "docker"
    engine.write_text(
        '#!/bin/sh\n[ "$*" = "compose version" ] || exit 125\necho Docker Compose version v2.29.1\n'
    )
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "My Project").mkdir()
    return tmp_path / "My Project"


@pytest.mark.parametrize(
    ("name", "text", "place", "run"),
    [
        (
            "compose.yaml",
            COMPOSE,
            "web",
            "docker compose run --rm -T -v {view}:/srv/app -w /srv/app web sh -c {command}",
        ),
        (
            "docker-compose.yml",
            "services:\n    api:\n        build:\n            context: .\n",
            "api",
            "docker compose run --rm -T -v {view}:/app -w /app api sh -c {command}",
        ),
        (
            ".devcontainer/devcontainer.json",
            '{\n  // a comment\n  "image": "mcr.microsoft.com/devcontainers/python:3.12"\n}\n',
            "dev",
            "docker run --rm -i -v {view}:/workspace -w /workspace mcr.microsoft.com/devcontainers/python:3.12 "
            "sh -c {command}",
        ),
        (
            "compose.yml",
            "services:\n  app:\n    image: x\n    volumes: [ 'a:/a', '.:/code:cached' ]\n",
            "app",
            "docker compose run --rm -T -v {view}:/code -w /code app sh -c {command}",
        ),
        *SAMPLES,
        (
            "Dockerfile",
            "FROM python:3.12\nWORKDIR /first\nworkdir /code\nRUN true\n",
            "my-project",
            "docker run --rm -i -v {view}:/code -w /code my-project sh -c {command}",
        ),
    ],
)
def test_a_place_is_found(root: Path, name: str, text: str, place: str, run: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    found = found_in(root)
    assert found is not None
    assert (found[0], found[1].name, found[1].run) == (name, place, run)
    place_of(found[1])


@pytest.mark.parametrize(
    "words", ["exit 1", "echo docker-compose version 1.29.2", "echo podman-compose version 1.6.0"]
)
def test_an_engine_without_a_usable_compose_is_not_offered_for_its_file(root: Path, words: str) -> None:
    (root / "compose.yaml").write_text(COMPOSE)
    assert found_in(root) is not None
    (root.parent / "bin" / "docker").write_text(f"#!/bin/sh\n{words}\n")
    assert found_in(root) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yaml", "services:\n  db:\n    image: postgres\n"),
        ("compose.yaml", "services: {a: {build: .}}\n"),
        ("compose.yaml", "services:\n  $(touch x):\n    build: .\n"),
        ("compose.yaml", "\x00\xff" * 100),
        (".devcontainer.json", '{"image": "x; touch y"}'),
        (".devcontainer.json", "[" * 100_000),
        (".devcontainer.json", '{"image": 3}'),
        (".devcontainer.json", '{"dockerComposeFile": "$(touch x).yml", "service": "a"}'),
        (".devcontainer.json", '{"dockerComposeFile": "../outside.yml", "service": "a"}'),
        (".devcontainer.json", '{"dockerComposeFile": "a.yml", "service": "-v /:/x"}'),
        (".devcontainer.json", '{"dockerComposeFile": [], "service": "a"}'),
        ("README.md", "docker"),
    ],
)
def test_nothing_is_found_in_other_files(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    assert found_in(root) is None


def test_each_recipe_of_the_page_is_a_place() -> None:
    page = (Path(__file__).parents[2] / "docs" / "places.md").read_text()
    blocks = [tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    found = [msgspec.convert(one, PlaceSettings) for block in blocks for one in block.get("places", ())]
    assert len(found) == 12
    for one in found:
        if one.kind == "command":
            assert place_of(one).argv("true", "/copy").count("/copy") <= 1


def told(session: Session) -> list[str]:
    return [one.text for one in session.state.notices.items if "/accept-place" in one.text]


async def test_it_is_offered_once_and_added_by_the_person(root: Path) -> None:
    (root / "compose.yaml").write_text(COMPOSE)
    async with open_session(root, [], interactive=True) as session:
        (offer,) = told(session)
        assert "docker compose run --rm -T -v {view}:/srv/app -w /srv/app web" in offer
        with pytest.raises(SessionError, match="There is no place web"):
            await session.commands.run("@web true")
        await session.commands.places.accept()
        await session.commands.run("@web true")
        await session.commands.ended()
        assert (
            session.state.commands.results[-1].how == "place"
        )  # The engine is a stand-in that always fails.
    assert [one.name for one in load(user_folders(), root).settings.places] == ["web"]
    async with open_session(root, [], interactive=True) as session:
        assert not told(session)
        with pytest.raises(SessionError, match="No new place"):
            await session.commands.places.accept()
