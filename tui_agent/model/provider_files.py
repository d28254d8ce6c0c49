"""Files at the provider: uploaded once per content, referenced by id, deleted at the end. Off by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from tui_agent.errors import ModelError


@runtime_checkable
class TakesFiles(Protocol):
    """A model that can hand files to its provider."""

    async def upload(self, model: str, name: str, text: str) -> str:
        """The id that the provider gives the file. Raises a `ModelError`."""
        ...

    async def delete_files(self, model: str, ids: list[str]) -> None:
        """Raises a `ModelError` where the provider keeps them."""
        ...


class ProviderFiles:
    """What this process has uploaded. Belongs to the session's loop.

    After a failure nothing more is uploaded to that model: `refused` says so, and the text goes into the prompt.
    """

    def __init__(self, model: TakesFiles) -> None:
        self._model = model
        self._ids: dict[tuple[str, str], str] = {}
        self._orphans: list[tuple[str, str]] = []
        self.refused: set[str] = set()

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that requests may refer to."""
        return tuple(self._ids.values())

    def has(self, model: str, md5: str) -> bool:
        """Whether this content is there already."""
        return (model, md5) in self._ids

    async def upload(self, model: str, path: str, md5: str, text: str) -> str:
        """The id of this content, uploaded once. Raises a `ModelError`, after which `model` is in `refused`."""
        if (model, md5) not in self._ids:
            try:
                self._ids[model, md5] = await self._model.upload(model, path.rpartition("/")[2], text)
            except ModelError:
                self.refused.add(model)
                raise
        return self._ids[model, md5]

    def adopt(self, model: str, ids: Iterable[str]) -> None:
        """Files that an earlier process could not delete: they go with ours."""
        self._orphans += [(model, file_id) for file_id in ids]

    async def close(self) -> str:
        """Delete everything; a sentence where some stays at the provider."""
        by_model: dict[str, list[str]] = {}
        for model, file_id in (*((key[0], value) for key, value in self._ids.items()), *self._orphans):
            by_model.setdefault(model, []).append(file_id)
        self._ids, self._orphans = {}, []
        left = 0
        for model, ids in by_model.items():
            try:
                await self._model.delete_files(model, ids)
            except ModelError:
                left += len(ids)
        return f"{left} uploaded files could not be deleted at the provider" if left else ""
