"""The adapters of one replica: loaded from the store on first use, and according to the cluster's registry."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from .protocol import Call, Head, Hints
from .registry import Registry
from .store import AdapterStore, CacheFull, Lease, StoreError

logger = logging.getLogger("ray.serve")
ABSENT_SECONDS = 5.0  # how long a name that the store lacks is not looked up again
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
Post = Callable[[str, dict[str, Any]], Awaitable[tuple[int, str]]]
Ask = Callable[[Call], Awaitable[Head]]


def message_of(text: str) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text


class AdapterKeeper:
    def __init__(self, store: AdapterStore | None, post: Post, registry: Registry) -> None:
        self._store = store
        self._post = post
        self._registry = registry
        self._leases: dict[str, Lease] = {}  # adapters from the store, least recently used first
        self._others: set[str] = set()  # names that the child has from other sources
        self._absent: dict[str, float] = {}
        self._in_use: dict[str, int] = {}
        self._lock = asyncio.Lock()  # one load or unload at a time on this replica
        self._applied: dict[str, int] = {}  # name -> serial of the last change applied
        self._version = 0

    # -- requests ----------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def using(self, hints: Hints | None) -> Any:
        """Loads the named adapters that the store has, and keeps them during the block."""
        names = [name for name in (hints.model, *hints.adapters) if name] if hints else []
        held: list[str] = []
        try:
            for asked in names if self._store else []:
                name = await self._ensure(asked)
                if name in self._leases:
                    self._leases[name] = self._leases.pop(name)  # now the most recently used
                    self._in_use[name] = self._in_use.get(name, 0) + 1
                    held.append(name)
            yield
        finally:
            for name in held:
                self._in_use[name] -= 1
                if not self._in_use[name]:
                    del self._in_use[name]

    async def _ensure(self, asked: str) -> str:
        """The adapter's name; the request may prefix it with the base model's name and a colon."""
        for name in (asked, *([asked.partition(":")[2]] if ":" in asked else [])):
            if not self._known(name):
                async with self._lock:
                    if not self._known(name):
                        await self._look_up(name)
            if name in self._leases:
                return name
        return asked

    def _known(self, name: str) -> bool:
        absent = time.monotonic() < self._absent.get(name, 0.0)
        return name in self._leases or name in self._others or absent

    async def _look_up(self, name: str) -> None:
        assert self._store is not None
        if await asyncio.to_thread(self._store.has, name):
            await self._load_from_store(name, {"lora_name": name})
            return
        self._absent = {n: t for n, t in self._absent.items() if time.monotonic() < t}
        self._absent[name] = (
            time.monotonic() + ABSENT_SECONDS
        )  # the child either knows it or reports that it does not exist

    async def _lease(self, name: str) -> Lease:
        """Takes a lease, unloading adapters that are not in use here until there is room."""
        assert self._store is not None
        while True:
            try:
                return await asyncio.to_thread(self._store.lease, name)
            except CacheFull:
                idle = next(
                    (n for n in self._leases if n != name and not self._in_use.get(n)), None
                )
                if idle is None:
                    raise
                await self._post(UNLOAD, {"lora_name": idle})
                self._leases.pop(idle).release()

    async def _load_from_store(self, name: str, body: dict[str, Any]) -> tuple[int, str]:
        lease = await self._lease(name)
        status, text = await self._post(LOAD, body | {"lora_path": str(lease.path)})
        if status == 400 and "already been loaded" in text and not body.get("load_inplace"):
            lease.release()  # loaded by --manifest or another option
            self._others.add(name)
            return status, text
        if status != 200:
            lease.release()
            raise StoreError(status, f"the adapter `{name}` can't be loaded: {message_of(text)}")
        before = self._leases.pop(name, None)
        self._leases[name] = lease
        if before:
            before.release()
        return status, text

    # -- changes by clients ------------------------------------------------------------------------------------------

    async def load(
        self, body: dict[str, Any], serial: int, call: Call, ask: Ask
    ) -> tuple[int, str]:
        """With a path, loads as the child does; without one, from the store."""
        name = body.get("lora_name")
        if not isinstance(name, str) or body.get("lora_path") or not self._store:
            head = await ask(call)
            status, text = head.status, head.body.decode()
        else:
            async with self._lock:
                self._absent.pop(name, None)
                if name in self._leases and not body.get("load_inplace"):
                    status, text = 200, f"Success: LoRA adapter '{name}' is loaded."
                else:
                    status, text = await self._load_from_store(name, body)
        if status == 200 and isinstance(name, str):
            self._applied[name] = serial
        return status, text

    def unloaded(self, name: str, serial: int) -> None:
        self._applied[name] = serial
        lease = self._leases.pop(name, None)
        if lease:
            lease.release()

    async def follow_registry(self) -> None:
        """Applies changes that this replica has missed."""
        version, adapters = await asyncio.to_thread(self._registry.read)
        if version == self._version:
            return
        for name, (serial, body) in adapters.items():
            if serial <= self._applied.get(name, 0):
                continue
            try:
                await self._follow(name, body)
                self._applied[name] = serial
            except StoreError as error:
                logger.error("could not follow a change of `%s`: %s", name, error)
        self._version = version

    async def _follow(self, name: str, body: dict[str, Any] | None) -> None:
        async with self._lock:
            if body is None:
                await self._post(UNLOAD, {"lora_name": name})
                lease = self._leases.pop(name, None)
                if lease:
                    lease.release()
            elif body.get("lora_path") or not self._store:
                status, text = await self._post(LOAD, body | {"load_inplace": True})
                if status != 200:
                    raise StoreError(status, message_of(text))
            else:
                await self._load_from_store(name, body | {"load_inplace": True})
