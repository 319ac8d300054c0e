"""The load of a soak test (soak.py): good clients, whose answers are checked, and hostile ones."""

import collections
import contextlib
import itertools
import json
import pathlib
import queue
import random
import shutil
import socket
import threading
import time

from soak_faults import Agreement, damage_swap
from soak_pressure import Gaps, ambiguous_request, large_form, slow_form, small_form
from soak_requests import CHAT, chat, content, huge_png, picture, places, request

ROOT = pathlib.Path(__file__).resolve().parents[2]
ADAPTERS = {folder.name: str(folder) for folder in sorted((ROOT / "demo" / "adapters").iterdir())}
SWAPPED = ["adapter-1", "adapter-2"]  # the adapter that `swapped` refers to, alternately


FLOOD = 3  # clients of the hostile adapter


class Soak:
    def __init__(self, server, reference, folder, adapters, hostile, dtype):
        """hostile: an adapter that only its own clients may feel; good clients never ask it."""
        self.server, self.reference, self.folder, self.hostile = server, reference, folder, hostile
        self.adapters = [name for name in adapters if name != hostile]
        self.agreement = Agreement(exact=dtype == "float32")
        self.damaged = 0  # bytes of the swap file
        self.gaps = Gaps(server.url)
        self.longest_form = 0.0  # time of an answer with a small grammar, in seconds
        self.over = threading.Event()
        self.counts, self.faults = collections.Counter(), []
        self.lock = threading.Lock()
        self.seeds = itertools.count(1)
        self.unchecked = queue.Queue(200)  # good clients wait while it is full
        self.checked = 0
        broken = folder / "broken"
        shutil.copytree(ADAPTERS["adapter-1"], broken)
        weights = broken / "adapter_model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1000])
        self.broken = str(broken)

    def note(self, kind, outcome, fault=None):
        with self.lock:
            self.counts[kind, outcome] += 1
            if fault:
                self.faults.append(f"{kind}: {fault}"[:500])

    def expect(self, kind, allowed, method, path, body=None):
        """Sends a request and records its status. A status that is not allowed is a fault, except 429 and 503:
        a full queue."""
        status, text = request(self.server.url, method, path, body)
        self.note(kind, status, None if status in allowed or status in (429, 503) else f"{status} {text}")
        return status, text

    def good(self, chance):
        seed = next(self.seeds)
        model = chance.choice(["base", *self.adapters, "swapped"])
        streamed = chance.random() < 0.5
        body = self.agreement.ask(model, f"What is picture {seed}?", picture(seed)) | {"stream": streamed}
        status, text = self.expect("good", [200], "POST", CHAT, body)
        if status == 200:
            self.unchecked.put((body, model, places(text, streamed)))

    def check(self):
        while item := self.unchecked.get():
            try:
                self.compare(*item)
            except Exception as error:
                self.note("check", type(error).__name__, repr(error))

    def compare(self, body, model, answer):
        names = SWAPPED if model == "swapped" else [model]
        expected = [places(request(self.reference.url, "POST", CHAT, self.agreement.other(body, name))[1], False) for name in names]
        self.checked += 1
        if not any(self.agreement.agree(answer, alone) for alone in expected):
            said = "".join(place[0][0] for place in answer)
            wanted = ["".join(place[0][0] for place in alone) for alone in expected]
            self.note("good", "wrong answer", f"{model}, {body['messages'][0]['content'][-1]['text']}: {said!r}, alone {wanted!r}")

    def flood(self, chance):
        self.expect("hostile adapter", [200], "POST", CHAT, chat(self.hostile, f"again {chance.random()}", max_tokens=8))

    def damage(self, chance):
        self.damaged += damage_swap(self.server.process.pid, chance)

    def swap(self, chance):
        for model in SWAPPED:
            self.expect("replaced adapter", [200], "POST", "/v1/load_lora_adapter",
                        {"lora_name": "swapped", "lora_path": ADAPTERS[model], "load_inplace": True})
            time.sleep(0.2 * chance.random())

    def churn(self, chance):
        name = f"churn-{chance.randrange(8)}"
        load = {"lora_name": name, "lora_path": chance.choice(list(ADAPTERS.values()))}
        self.expect("adapter load", [200, 400], "POST", "/v1/load_lora_adapter", load)
        self.expect("adapter of the moment", [200, 404], "POST", CHAT, chat(name, "hello", max_tokens=4))
        self.expect("adapter unload", [200, 404], "POST", "/v1/unload_lora_adapter", {"lora_name": name})

    def bad_adapter(self, chance):
        path, allowed = chance.choice([("/no/such/folder", [404]), (self.broken, [400, 422]), ("", [400])])
        self.expect("broken adapter", allowed, "POST", "/v1/load_lora_adapter", {"lora_name": "broken", "lora_path": path})

    def bad_body(self, chance):
        body = chance.choice([
            b'{"model": "base", "messages": [', b"[1, 2]", b"null", b"\xff\xfe" * 50, b'{"messages": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            {"model": "base", "messages": "hello"}, {"model": "base"}, chat("base", "x", temperature="hot"), chat("base", "x", max_tokens=-1),
            chat("base", "x", n=10_000), chat("base", "x", logit_bias={"x": 1}), chat("base", "x", response_format={"type": "table"}),
            chat("base", "x", structured_outputs={"regex": "[.*"}), chat("base", "look: <|image_pad|>")])
        paths = [CHAT, "/v1/completions", "/v1/embeddings", "/classify", "/tokenize", "/v1/load_lora_adapter"] if isinstance(body, bytes) else [CHAT]
        self.expect("broken body", [400], "POST", chance.choice(paths), body)

    def bad_picture(self, chance):
        data = picture(next(self.seeds))
        broken = chance.choice([data[:len(data) // 2], b"no picture " * 20, huge_png(65_000), "data:image/png;base64,@@@@", "http://127.0.0.1:1/x.png",
                                "file:///etc/passwd", data[:8] + bytes(chance.randrange(256) for _ in range(200))])
        self.expect("broken picture", [400, 413], "POST", CHAT, chat("base", "what?", broken))

    def long_prompt(self, chance):
        self.expect("prompt too long", [400, 413], "POST", CHAT, chat("base", "word " * chance.choice([2_000, 20_000, 200_000])))
        self.expect("long prompt", [200], "POST", "/v1/completions",
                    {"model": chance.choice(["base", *ADAPTERS]), "prompt": [chance.randrange(1000) for _ in range(900)], "max_tokens": 60, "n": 2,
                     "temperature": 1})

    def unknown(self, chance):
        self.expect("unknown model", [404], "POST", CHAT, chat(f"nobody-{chance.random()}", "hi"))
        self.expect("unknown path", [404, 405], chance.choice(["GET", "POST", "DELETE"]), "/v1/nothing")

    def raw(self, data):
        connection = socket.create_connection(("127.0.0.1", int(self.server.url.rsplit(":", 1)[1])), timeout=60)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(data)
        return connection

    def post_raw(self, body, length=None):
        data = json.dumps(body).encode()
        return self.raw(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                        % (CHAT.encode(), len(data) if length is None else length, data))

    def leave(self, chance):
        """Abandons a stream, leaves an answer unread, and sends a body that never ends."""
        fields = dict(max_tokens=400, stream=chance.random() < 0.7)
        with self.post_raw(chat(chance.choice(["base", *ADAPTERS]), "tell", picture(next(self.seeds)), **fields),
                           None if chance.random() < 0.8 else 100_000) as connection:
            connection.settimeout(chance.random() * 0.5)
            with contextlib.suppress(OSError):
                connection.recv(200)
        self.note("left connection", "closed")

    def junk(self, chance):
        data = chance.choice([b"\0" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", b"A" * 100_000, b"POST /v1/chat/completions HTTP/1.1\r\nHost:",
                              b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n{"])
        try:
            with self.raw(data) as connection:
                connection.shutdown(socket.SHUT_WR)
                line = connection.recv(100).split(b"\r\n")[0].decode("latin-1")
        except OSError:
            line = ""
        self.note("junk", line[9:12] or "closed", line if line[9:10] == "5" else None)

    def grammar(self, chance):
        """The grammar may be rejected."""
        self.expect("ambiguous grammar", [200, 400], "POST", CHAT, ambiguous_request(chance.choice(["base", *ADAPTERS])))

    def fill_grammar_cache(self):
        """Fills the 64 MiB cache, so that new grammars no longer increase memory."""
        for seed in range(40):
            self.expect("large form", [200], "POST", CHAT, large_form(seed))

    def slow_form(self, chance):
        """Sends a grammar that exhausts the server's compilation time."""
        self.expect("slow form", [400], "POST", CHAT, slow_form(next(self.seeds)))

    def small_form(self, chance):
        """Sends a new grammar that compiles at once."""
        seed, begin = next(self.seeds), time.monotonic()
        status, text = self.expect("small form", [200], "POST", CHAT, small_form(chance.choice(["base", *ADAPTERS]), seed))
        if status == 200 and json.loads(content(text, False)) != {"seed": seed}:
            self.note("small form", "wrong answer", content(text, False))
        self.longest_form = max(self.longest_form, time.monotonic() - begin)

    def stream(self, chance):
        status, text = self.gaps.stream("base", self.over)
        self.note("stream", status, None if status in (200, 429, 503) else text)

    def slow(self, chance):
        with self.post_raw(chat("base", "tell", stream=True, max_tokens=900)) as connection:
            for _ in range(40):
                if self.over.is_set() or not connection.recv(20):
                    break
                time.sleep(0.05)
        self.note("slow reader", "closed")

    def repeat(self, action, seed, pause):
        chance = random.Random(seed)
        while not self.over.is_set():
            try:
                action(chance)
            except Exception as error:  # ending the thread would hide later faults
                self.note(action.__name__, type(error).__name__, repr(error))
            self.over.wait(pause * chance.random())

    def threads(self):
        plan = [(self.good, 0.02)] * 4 + [(self.stream, 0.1), (self.grammar, 1), (self.small_form, 0.5), (self.damage, 1)]
        plan += [(self.flood, 0.02)] * FLOOD
        plan += [(self.slow_form, 0.5)] * 2 + [(self.slow, 0.5)] * 2 + [(self.leave, 0.2)] * 2
        plan += [(action, 0.3) for action in (self.swap, self.churn, self.bad_adapter, self.bad_body, self.bad_picture, self.long_prompt,
                                              self.unknown, self.junk)]
        return [threading.Thread(target=self.repeat, args=(action, seed, pause)) for seed, (action, pause) in enumerate(plan)]
