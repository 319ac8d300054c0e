"""Records which adapters were loaded and unloaded at run time, in the cluster's control store.

Replicas that start later, or missed a broadcast, catch up from it.
"""

import json
from typing import Any, Protocol

NAMESPACE = "valora_serve"
Changes = dict[str, tuple[int, dict[str, Any] | None]]


class Store(Protocol):
    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...


class ClusterStore:
    """The Ray cluster's key-value store, which outlives replicas."""

    def get(self, key: str) -> bytes | None:
        from ray.experimental.internal_kv import _internal_kv_get

        return _internal_kv_get(key, namespace=NAMESPACE)

    def put(self, key: str, value: bytes) -> None:
        from ray.experimental.internal_kv import _internal_kv_put

        _internal_kv_put(key, value, overwrite=True, namespace=NAMESPACE)


class Registry:
    """The last change of each name: its serial, and the body that loaded it, or None if it was unloaded.

    Only ingresses write; if two write at the same time, the later one wins.
    """

    def __init__(self, application: str, store: Store | None = None) -> None:
        self._key = f"adapters:{application}"
        self._store = ClusterStore() if store is None else store

    def read(self) -> tuple[int, Changes]:
        """Returns (serial of the last change, changes)."""
        value = self._store.get(self._key)
        if not value:
            return 0, {}
        table = json.loads(value)
        return table["serial"], {
            name: (serial, body) for name, (serial, body) in table["changes"].items()
        }

    def next_serial(self) -> int:
        return self.read()[0] + 1

    def write(self, name: str, serial: int, body: dict[str, Any] | None) -> None:
        last, changes = self.read()
        changes[name] = (serial, body)
        table = {"serial": max(last, serial), "changes": changes}
        self._store.put(self._key, json.dumps(table).encode())
