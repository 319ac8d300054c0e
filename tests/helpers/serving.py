"""`valora serve` as a child process, with a tiny random checkpoint and adapters, and a plain HTTP
client."""

import base64
import http.client
import io
import json
import shutil
import subprocess
import time

import numpy
from PIL import Image

from programs import find_program

MODEL = "vl-small-patch"
LABELS = {"three": ["red", "green", "blue"], "five": ["a", "b", "c", "d", "e"]}


def make_folders(root):
    """Model and adapter folders: two adapters without heads, two with heads of different label
    counts."""
    import checkpoints  # needs transformers, which tests of clients have not

    base = checkpoints.make_model(MODEL)
    folders = {"model": checkpoints.save_model(base, root / "model")}
    # Decoder only: no module of the vision tower has these names.
    for seed, (name, rank) in enumerate({"one": 1, "two": 16, "three": 4, "five": 8}.items()):
        folders[name] = checkpoints.save_adapter(base, root / name, seed, rank=rank)
        if name in LABELS:
            checkpoints.add_head(folders[name], base.config.get_text_config().hidden_size, LABELS[name], seed, bias=True)
    return folders


def as_reranker(source, root, yes=5, no=6):
    """A copy of a model's folder that says that it judges pairs by these two tokens."""
    shutil.copytree(source, root)
    (root / "1_LogitScore").mkdir()
    (root / "1_LogitScore" / "config.json").write_text(json.dumps({"true_token_id": yes, "false_token_id": no}))
    (root / "modules.json").write_text('[{"path": "1_LogitScore", "type": "sentence_transformers.cross_encoder.modules.LogitScore"}]')
    return root


class ServedProcess:
    """`valora serve` with these options, on a free port unless they specify one. It draws
    reproducibly, so that a test without a temperature has the same answers in each run."""

    def __init__(self, *options, log_level="warning", **process_options):
        port = [] if "--port" in options else ["--port", "0"]
        seed = [] if "--seed" in options else ["--seed", "0"]
        self.process = subprocess.Popen([find_program("valora"), "--log-level", log_level, "serve", *port, *seed, *options],
                                        stdout=subprocess.PIPE, text=True, **process_options)
        self.welcome = []
        for line in self.process.stdout:
            self.welcome.append(line)
            if "serving" in line:
                break
        assert self.welcome and "serving" in self.welcome[-1], "the server did not start"
        self.url = self.welcome[-1].split()[1].removesuffix("/v1")
        self.port = int(self.url.rsplit(":", 1)[1])

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Sends one request on its own connection; returns (status, text)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json"} | (headers or {}))
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def post(self, path, body):
        status, text = self.request("POST", path, body)
        assert status == 200, text
        return json.loads(text)

    def chat(self, model, content, **extra):
        return self.post("/v1/chat/completions", chat_body(model, content, **extra))

    def metric(self, name):
        """Sum over a metric's series."""
        _, text = self.request("GET", "/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith((name + "{", name + " ")))

    def wait_until(self, condition, what):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError(f"never came about: {what}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        return self.process.returncode


class Server(ServedProcess):
    """Serves the model of make_folders as `tiny`, with its adapters."""

    def __init__(self, folders, *options, **process_options):
        modules = [f"{name}={path}" for name, path in folders.items() if name != "model"]
        dtype = [] if "--dtype" in options else ["--dtype", "float32"]
        adapters = ["--lora-modules", *modules] if modules else []
        super().__init__("--model", folders["model"], "--served-model-name", "tiny", *dtype, "--threads", "1",
                         "--max-model-len", "1024", *adapters, *options, **process_options)


def chat_body(model, content, **extra):
    return dict(model=model, messages=[{"role": "user", "content": content}], temperature=0, max_tokens=24,
                ignore_eos=True) | extra


def picture(seed, width=40, height=32):
    pixels = numpy.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=numpy.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def data_url(data, kind="image/png"):
    return f"data:{kind};base64," + base64.b64encode(data).decode()


def image_part(data):
    return {"type": "image_url", "image_url": {"url": data if isinstance(data, str) else data_url(data)}}


def text_part(text):
    return {"type": "text", "text": text}
