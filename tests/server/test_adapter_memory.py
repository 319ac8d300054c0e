"""Unloaded adapters must give their memory back."""

import json

import numpy
import pytest
from safetensors.numpy import load_file, save_file

import checkpoints
from serving import MODEL, Server, text_part

ADAPTERS, ROUNDS = 300, 4


@pytest.fixture(scope="module")
def adapters(folders, tmp_path_factory):
    """Many adapters that differ only in their values."""
    root = tmp_path_factory.mktemp("adapters")
    first = checkpoints.save_adapter(checkpoints.make_model(MODEL), root / "0", 0, rank=64)
    config = (first / "adapter_config.json").read_text()
    tensors = load_file(first / "adapter_model.safetensors")
    rng = numpy.random.default_rng(1)
    for i in range(1, ADAPTERS):
        folder = root / str(i)
        folder.mkdir()
        (folder / "adapter_config.json").write_text(config)
        save_file({name: rng.normal(0, 0.02, value.shape).astype(value.dtype) for name, value in tensors.items()},
                  folder / "adapter_model.safetensors")
    return [root / str(i) for i in range(ADAPTERS)]


def resident_mib(server):
    with open(f"/proc/{server.process.pid}/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def test_unloading_returns_memory(folders, adapters):
    server = Server({"model": folders["model"]}, "--allow-runtime-lora-updating", "--pool-memory", "16M")
    try:
        loaded, unloaded = [], []
        for _ in range(ROUNDS):
            for i, folder in enumerate(adapters):
                body = {"lora_name": f"a{i}", "lora_path": str(folder)}
                assert server.request("POST", "/v1/load_lora_adapter", body)[0] == 200
            server.chat("a7", [text_part("x")], max_tokens=1)
            loaded.append(resident_mib(server))
            for i in range(len(adapters)):
                assert server.request("POST", "/v1/unload_lora_adapter", {"lora_name": f"a{i}"})[0] == 200
            unloaded.append(resident_mib(server))
        figures = json.dumps({"loaded": loaded, "unloaded": unloaded})
        # A round reads some 200 MiB. The first rounds also fill the pool and warm up the heap.
        assert unloaded[-1] - unloaded[1] < 20, figures
        assert loaded[-1] - loaded[1] < 20, figures
    finally:
        server.stop()
