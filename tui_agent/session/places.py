"""Places of a session, from the settings and from the folder's files that the user accepted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.checks.output import REPORTING
from tui_agent.errors import PlaceLost, SessionError
from tui_agent.files.private import FolderAnswers
from tui_agent.log.core import Core, call
from tui_agent.session.trial_views import TrialViews
from tui_agent.settings.files import append
from tui_agent.settings.schema import PlaceSettings
from tui_agent.store.commands import By

if TYPE_CHECKING:
    from tui_agent.places.contents import Contents
    from tui_agent.places.dask_place import Cluster
    from tui_agent.places.link import Channel
    from tui_agent.places.place import CommandPlace
    from tui_agent.places.runner import PlaceRunner
    from tui_agent.sandbox.view_plan import Seed

STORE = "places.json"
_COLOURS = "FORCE_COLOR=1 CLICOLOR_FORCE=1 PY_COLORS=1 "
_REPORTS = "".join(f'{name}="${{{name}:+${name} }}{value}" ' for name, value in REPORTING.items())


class SessionPlaces:
    def __init__(self, core: Core, views: TrialViews, copied: Path | None = None) -> None:
        """`copied` is the original of a copied workspace, with which it shares the copies and the containers."""
        self._workspace, self._folders = core.workspace, core.folders
        self._settings = core.settings
        self._views = views
        self._original = str(copied or core.workspace.root)
        self._swept = False
        self._clusters: dict[str, Cluster] = {}
        self._accepted: list[PlaceSettings] = []
        self._answers = FolderAnswers(core.folders.data / STORE, core.workspace.root)

    @property
    def settings(self) -> Sequence[PlaceSettings]:
        return (*self._settings.places, *self._accepted)

    @call(changes=False)
    async def offer(self) -> None:
        found = await asyncio.to_thread(self._found)
        if found is None or await asyncio.to_thread(self._answers.get) is not None:
            return
        with suppress(OSError):
            await asyncio.to_thread(self._answers.keep, found[1].name)
        said = f"{found[0]}: commands can run in a container; /accept-place adds `{found[1].run}` as {found[1].name}"
        await self._views.notify_once(said)

    @call(changes=True)
    async def accept(self) -> None:
        """Adds it to the user's settings. Raises `SessionError` if there is none, and `FileError`."""
        found = await asyncio.to_thread(self._found)
        if found is None:
            raise SessionError("No new place was found in this folder", "add [[places]] to settings.toml")
        _, place = found
        lines = [f"{key} = {json.dumps(getattr(place, key))}" for key in ("name", "run", "copy")]
        await asyncio.to_thread(append, self._folders.config, "\n".join(["[[places]]", *lines, ""]))
        self._accepted.append(place)
        await self._views.notify_once(f"{place.name} is a place now: !@{place.name} and a command run there")

    def _found(self) -> tuple[str, PlaceSettings] | None:
        from tui_agent.places.detection import found_in

        found = found_in(self._workspace.root)
        return None if found and any(one.name == found[1].name for one in self.settings) else found

    def settings_of(self, name: str) -> PlaceSettings:
        """Raises `SessionError` for an unknown name."""
        from tui_agent.places.place import settings_named

        return settings_named(self.settings, name)

    def get(self, name: str, by: By) -> CommandPlace:
        """Raises `SessionError` for an unknown name, or one that the model may not use."""
        from tui_agent.places.place import named

        place = named(self.settings, name)
        if by == "model" and not place.settings.model:
            raise SessionError(f"The place {name} is not allowed for you", "run the command here")
        return place

    async def open(
        self, name: str, by: By, *, pending: bool = True, seeded: Callable[[], object] | None = None
    ) -> PlaceRunner:
        """Parameters as in `TrialViews.replaced`. Raises `SessionError`."""
        place = self.get(name, by)
        await self._workspace.ready()
        seeds, paths = await self._views.replaced(pending=pending, seeded=seeded)
        exports = {"person": _COLOURS, "check": _REPORTS}.get(by, "")
        contents = await self.contents(name, seeds)
        return await self._opened(place, contents, exports, paths)

    async def contents(self, name: str, seeds: Sequence[Seed], more: Sequence[str] = ()) -> Contents:
        from tui_agent.places.contents import contents_of

        shown = await asyncio.to_thread(self._views.shown_secrets)
        root, paths = str(self._workspace.root), [*self._workspace.index.paths, *shown, *more]
        contents = await asyncio.to_thread(contents_of, root, paths, seeds)
        if contents.left:
            said = f"Not in {name}: {len(contents.left):,} files whose names cannot travel"
            await self._views.notify_once(said, "warning")
        return contents

    async def open_worker(
        self, name: str, replaced: Mapping[str, bytes | None], more: Sequence[str]
    ) -> tuple[Channel, Contents, bool]:
        """The worker has the folder as on disk, except for `replaced`, and the files `more`. Returns its
        channel, the contents, and whether it has them. Raises `SessionError` and `PlaceLost`.
        """
        from tui_agent.places.runner import ProcessChannel

        settings = self.settings_of(name)
        await self._workspace.ready()
        contents = await self.contents(name, await self._views.replaced_by(replaced), more)
        if settings.kind == "dask":
            from tui_agent.places.dask_place import Cluster, DaskChannel

            cluster = self._clusters.setdefault(settings.run, Cluster(name, settings.run))
            distant = DaskChannel(cluster)
            await distant.open()
            return distant, contents, False
        try:
            runner = await self._opened(self.get(name, "person"), contents)
        except SessionError as error:
            raise PlaceLost(error.what, error.remedy) from error
        channel = ProcessChannel(runner, name)
        try:
            await channel.open()
        except BaseException:
            await runner.remove()
            raise
        return channel, contents, True

    @call(changes=False)
    async def close(self) -> None:
        await asyncio.gather(*(cluster.close() for cluster in self._clusters.values()))

    async def _opened(
        self, place: CommandPlace, contents: Contents, exports: str = "", pending: tuple[str, ...] = ()
    ) -> PlaceRunner:
        from tui_agent.places.far_copy import FarCopy
        from tui_agent.places.kept_folder import KeptFolder, sweep
        from tui_agent.places.place import engine_environment
        from tui_agent.places.runner import PlaceRunner

        environment = engine_environment(os.environ, self._settings.trial.env)
        every = self._folders.state / "places"
        if not self._swept:
            self._swept = True
            await asyncio.to_thread(sweep, every)
        name = place.name
        key = hashlib.sha256(f"{self._original}\0{name}".encode(errors="surrogateescape")).hexdigest()[:20]
        parent, ignored = every / key, self._workspace.ignored
        copy = (
            FarCopy(place, parent / "far", ignored, environment, self._views.notify_once)
            if place.is_far
            else KeptFolder(parent / "here", ignored)
        )
        runner = PlaceRunner(place, copy, environment, self._original, exports, pending)
        try:
            await runner.open(contents)
        except OSError as error:
            await runner.remove()
            why = error.strerror or str(error)
            raise SessionError(f"The copy for {name} could not be made ({why})", "free some space") from error
        except BaseException:
            await runner.remove()
            raise
        return runner
