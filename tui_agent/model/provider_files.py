"""File uploads to providers: uploaded once per content, referenced by id, deleted on exit. Off by default."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from tui_agent.errors import ModelError


@runtime_checkable
class StoresFiles(Protocol):
    """A model whose provider stores files."""

    async def upload(self, model: str, name: str, text: str) -> str:
        """Raises a `ModelError`."""
        ...

    async def delete_files(self, model: str, ids: list[str]) -> None:
        """Raises a `ModelError` if a deletion fails."""
        ...


class ProviderFiles:
    """Uploads of this process. Belongs to the session's loop.

    A failure adds the model to `refused`; subsequent file texts are included in its prompts.
    """

    def __init__(self, model: StoresFiles) -> None:
        self._model = model
        self._ids: dict[tuple[str, str], str] = {}
        self._orphans: list[tuple[str, str]] = []
        self.refused: set[str] = set()

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids that requests may reference."""
        return tuple(self._ids.values())

    def has(self, model: str, md5: str) -> bool:
        """Whether this content is already uploaded."""
        return (model, md5) in self._ids

    async def upload(self, model: str, path: str, md5: str, text: str) -> str:
        """The id of this content, uploaded once. Raises a `ModelError` and adds `model` to `refused`."""
        if (model, md5) not in self._ids:
            try:
                self._ids[model, md5] = await self._model.upload(model, path.rpartition("/")[2], text)
            except ModelError:
                self.refused.add(model)
                raise
        return self._ids[model, md5]

    def adopt(self, model: str, ids: Iterable[str]) -> None:
        """Takes over files that an earlier process failed to delete."""
        self._orphans += [(model, file_id) for file_id in ids]

    async def close(self) -> str:
        """Returns a sentence about failed deletions, or ""."""
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
