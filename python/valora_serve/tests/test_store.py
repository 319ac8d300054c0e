"""The shared store: adapters are fetched once, verified, limited in size, and resolved by name. Without
Ray, except for the last tests."""

import asyncio
import concurrent.futures
import json
import subprocess
import sys

import fsspec
import pytest

from valora_serve.adapters import LOAD, UNLOAD, AdapterKeeper
from valora_serve.protocol import Call, Hints
from valora_serve.registry import Registry
from valora_serve.store import SUMS, AdapterStore, CacheFull, StoreError, safe_name, sums_of


def make(folder, names, size=1000, sums=True):
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "adapter_config.json").write_text("{}")
        (folder / name / "adapter_model.safetensors").write_bytes(
            name.encode() * (size // len(name))
        )
        if sums:
            (folder / name / SUMS).write_text(sums_of(folder / name))


@pytest.fixture
def shared(tmp_path):
    make(tmp_path / "store", ["a", "b", "c"])
    return tmp_path / "store"


def store_of(shared, tmp_path, limit=10**6, require=True):
    return AdapterStore(str(shared), str(tmp_path / "cache"), limit, require)


def test_adapter_is_fetched_once(shared, tmp_path, monkeypatch):
    store = store_of(shared, tmp_path)
    copies = []
    copy = AdapterStore._copy
    monkeypatch.setattr(
        AdapterStore, "_copy", lambda self, *words: copies.append(words) or copy(self, *words)
    )
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda _: store_of(shared, tmp_path).lease("a"), range(8)))
    assert len({lease.path for lease in leases}) == 1 and len(copies) == 2  # two files
    assert (leases[0].path / "adapter_model.safetensors").read_bytes() == (
        shared / "a" / "adapter_model.safetensors"
    ).read_bytes()
    assert store.used_bytes() == 1000 + 2


def test_url_works_as_a_store(tmp_path):
    memory = fsspec.filesystem("memory")
    memory.pipe("/adapters/a/weights", b"weights")
    memory.pipe(
        f"/adapters/a/{SUMS}",
        b"9a7b2d07b8f8ea2cf3e3b9d9d4c7f6b2b4fc6cb29f2fbe5e2f28b53c4c9b1f6b  weights\n",
    )
    store = AdapterStore("memory://adapters", str(tmp_path), 10**6, True)
    with pytest.raises(StoreError, match="is not what SHA256SUMS says"):
        store.lease("a")
    memory.pipe(f"/adapters/a/{SUMS}", sums_line(b"weights"))
    assert (store.lease("a").path / "weights").read_bytes() == b"weights"


def sums_line(content):
    import hashlib

    return f"{hashlib.sha256(content).hexdigest()}  weights\n".encode()


def test_digests_are_checked(shared, tmp_path):
    store = store_of(shared, tmp_path)
    (shared / "a" / "adapter_model.safetensors").write_bytes(b"something else")
    with pytest.raises(StoreError, match="adapter_model.safetensors is not what") as error:
        store.lease("a")
    assert error.value.status == 400 and store.used_bytes() == 0
    (shared / "b" / SUMS).unlink()
    with pytest.raises(StoreError, match="has no SHA256SUMS"):
        store.lease("b")
    assert store_of(shared, tmp_path, require=False).lease("b").path.is_dir()
    for text in ("no sums", f"{'0' * 64}  ../../etc/passwd\n", ""):
        (shared / "c" / SUMS).write_text(text)
        with pytest.raises(StoreError, match="is not a list"):
            store.lease("c")
    (shared / "c" / SUMS).write_text(f"{'0' * 64}  missing\n")
    with pytest.raises(StoreError, match="missing"):
        store.lease("c")


def test_output_of_sha256sum_is_a_valid_digest_list(shared, tmp_path):
    folder = shared / "a"
    (folder / SUMS).unlink()
    made = subprocess.run(
        "sha256sum *", shell=True, cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    (folder / SUMS).write_text(made)
    assert store_of(shared, tmp_path).lease("a").path.is_dir()


def test_changed_adapter_gets_its_own_entry(shared, tmp_path):
    store = store_of(shared, tmp_path)
    before = store.lease("a")
    (shared / "a" / "adapter_model.safetensors").write_bytes(b"new")
    (shared / "a" / SUMS).unlink()
    (shared / "a" / SUMS).write_text(sums_of(shared / "a"))
    after = store.lease("a")
    assert before.path != after.path and before.path.is_dir()
    assert (after.path / "adapter_model.safetensors").read_bytes() == b"new"


def test_cache_is_bounded_and_keeps_adapters_in_use(shared, tmp_path):
    store = store_of(shared, tmp_path, limit=2100)
    first, second = store.lease("a"), store.lease("b")
    with pytest.raises(CacheFull):
        store.lease("c")
    first.release()
    third = store.lease("c")
    assert not first.path.exists() and second.path.is_dir() and third.path.is_dir()
    assert store.used_bytes() <= 2100


def test_killed_process_releases_its_adapters(shared, tmp_path):
    code = (
        f"from valora_serve.store import AdapterStore\nimport time\n"
        f"lease = AdapterStore({str(shared)!r}, {str(tmp_path / 'cache')!r}, 1100, True).lease('a')\n"
        f"print('held', flush=True)\ntime.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        store = store_of(shared, tmp_path, limit=1100)
        with pytest.raises(CacheFull):
            store.lease("b")
        other.kill()
    assert store.lease("b").path.is_dir()


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a\n", "x" * 300]
)
def test_names_cannot_escape_the_store(shared, tmp_path, name):
    assert not safe_name(name)
    with pytest.raises(StoreError) as error:
        store_of(shared, tmp_path).lease(name)
    assert error.value.status == 404


class FakeServer:
    """Imitates a child's response to loads and unloads."""

    def __init__(self):
        self.loaded = {}
        self.log = []

    async def post(self, path, body):
        self.log.append((path, body["lora_name"]))
        if path == UNLOAD:
            return (200, "") if self.loaded.pop(body["lora_name"], None) else (404, "{}")
        if body["lora_name"] in self.loaded and not body.get("load_inplace"):
            return 400, json.dumps(
                {"error": {"message": "The lora adapter 'x' has already been loaded."}}
            )
        self.loaded[body["lora_name"]] = body["lora_path"]
        return 200, "Success"


class FakeKeyValue(dict):
    def put(self, key, value):
        self[key] = value


def keeper_of(shared, tmp_path, limit=10**6, values=None):
    server = FakeServer()
    registry = Registry("test", FakeKeyValue() if values is None else values)
    return AdapterKeeper(store_of(shared, tmp_path, limit), server.post, registry), server


def test_adapters_are_resolved_on_first_use(shared, tmp_path):
    async def ask():
        keeper, server = keeper_of(shared, tmp_path)

        async def use(*names):
            async with keeper.using(Hints(names[0], names[1:])):
                pass

        await asyncio.gather(*(use("a") for _ in range(10)), use("base:b", "a"), use("none"))
        assert sorted(server.log) == [(LOAD, "a"), (LOAD, "b")]

    asyncio.run(ask())


def test_only_idle_adapters_are_evicted(shared, tmp_path):
    async def ask():
        keeper, server = keeper_of(shared, tmp_path, limit=2100)
        async with keeper.using(Hints("a")):
            async with keeper.using(Hints("b")):
                pass
            async with keeper.using(Hints("c")):
                assert set(server.loaded) == {"a", "c"}
                with pytest.raises(CacheFull):
                    async with keeper.using(Hints("b")):
                        pass

    asyncio.run(ask())


def test_keeper_follows_the_registry(shared, tmp_path):
    async def follow():
        values = FakeKeyValue()
        keeper, server = keeper_of(shared, tmp_path, values=values)
        registry = Registry("test", values)
        registry.write("a", registry.next_serial(), {"lora_name": "a"})
        registry.write("x", registry.next_serial(), {"lora_name": "x", "lora_path": "/x"})
        await keeper.follow_registry()
        assert set(server.loaded) == {"a", "x"} and server.loaded["x"] == "/x"
        seen = len(server.log)
        await keeper.follow_registry()
        assert len(server.log) == seen
        registry.write("x", registry.next_serial(), None)
        await keeper.follow_registry()
        assert set(server.loaded) == {"a"}
        serial = registry.next_serial()
        await keeper.load(
            {"lora_name": "a", "load_inplace": True},
            serial,
            Call("POST", LOAD, {}, b"", False),
            None,
        )
        registry.write("a", serial, {"lora_name": "a", "load_inplace": True})
        seen = len(server.log)
        await keeper.follow_registry()  # sees only its own change
        assert len(server.log) == seen

    asyncio.run(follow())
