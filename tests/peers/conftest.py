"""A server of the demo model for all tests, the openai client, and the demo's pictures and clips over HTTP."""

import functools
import http.server
import shutil
import threading

import openai
import pytest

from peers import ADAPTERS, DEMO
from serving import ServedProcess


@pytest.fixture(scope="session")
def served(tmp_path_factory):
    """The base model `demo` and its adapters, with the limits that the peers' tests set."""
    resolved = tmp_path_factory.mktemp("resolved")
    shutil.copytree(ADAPTERS["adapter-3"], resolved / "found")
    shutil.copytree(ADAPTERS["adapter-3"], resolved / "broken")
    (resolved / "broken" / "adapter_model.safetensors").write_bytes(b"nothing")
    server = ServedProcess(
        "--model", str(DEMO / "model"), "--served-model-name", "demo", "--dtype", "float32", "--threads", "1",
        "--lora-modules", *(f"{name}={path}" for name, path in ADAPTERS.items()),
        "--max-model-len", "1024", "--max-lora-rank", "64", "--max-num-seqs", "32", "--pool-memory", "256M",
        "--allow-runtime-lora-updating", "--limit-mm-per-prompt", '{"image": 2, "video": 1}',
        "--allow-media-urls", "--allowed-media-domains", "127.0.0.1", "--tool-call-parser", "hermes", "--lora-resolver-dir", str(resolved))
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def client(served):
    return openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=60)


@pytest.fixture(scope="session")
def tokenizer():
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(DEMO / "model")


@pytest.fixture(scope="session")
def samples_url():
    """The URL at which the demo's samples are served."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=DEMO / "samples"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()
