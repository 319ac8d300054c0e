"""`valora serve` as a benchmark's child process."""

import json
import subprocess
import threading
import time
import urllib.request


def at_once(ask, count):
    """Calls ask(0), ask(1), … in a thread each and waits for all."""
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Served:
    """`valora serve` with these options on a free port."""

    def __init__(self, program, *options, log_level="warning", cwd=None):
        self.process = subprocess.Popen([str(program), "--log-level", log_level, "serve", "--port", "0", *map(str, options)],
                                        stdout=subprocess.PIPE, text=True, cwd=cwd)
        self.url = next((line.split()[1].removesuffix("/v1") for line in self.process.stdout if "serving" in line), None)
        if not self.url:
            raise SystemExit("the server did not start")

    def ask(self, method, path, body=None, kind="application/json"):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": kind}, method=method)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def memory(self):
        """Resident memory of the process, in MiB."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return next((int(line.split()[1]) / 1024 for line in file if line.startswith("VmRSS")), 0)

    def close(self):
        self.process.terminate()
        self.process.wait()


class Valora(Served):
    """A server, by default without prefix caching. A batch is sent as concurrent HTTP requests."""

    def __init__(self, program, model_dir, adapter_dirs, threads, more=(), prefix_caching=False, step_tokens=4096,
                 model_len=2048, dtype="bfloat16"):
        """`more`: additional program arguments. `step_tokens`: most tokens per step; None: the default."""
        modules = [f"a{i}={path}" for i, path in enumerate(adapter_dirs)]
        begin = time.perf_counter()
        super().__init__(
            program, "--model", model_dir, "--served-model-name", "base", "--dtype", dtype, "--threads", threads,
            "--max-model-len", model_len, *([] if prefix_caching else ["--no-enable-prefix-caching"]),
            *(["--max-num-batched-tokens", step_tokens] if step_tokens else []),
            *(["--lora-modules", *modules] if modules else []), *more)
        self.start_seconds = time.perf_counter() - begin

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            first, body = None, b""
            for line in response:
                if line.startswith(b"data: {") and first is None:
                    first = time.perf_counter()
                body += line
            return first, time.perf_counter(), body

    def run(self, prompts, images, names, tokens):
        results = [None] * len(prompts)

        def ask(i):
            common = dict(model=names[i], max_tokens=tokens, ignore_eos=True, temperature=0, stream=True)
            if images:
                content = [{"type": "image_url", "image_url": {"url": images[i]}}, {"type": "text", "text": prompts[i]}]
                results[i] = self.post("/v1/chat/completions", common | {"messages": [{"role": "user", "content": content}]})
            else:
                results[i] = self.post("/v1/completions", common | {"prompt": prompts[i]})

        begin = time.perf_counter()
        at_once(ask, len(prompts))
        first = max(r[0] for r in results)
        end = max(r[1] for r in results)
        return end - begin, end - first

    def metrics(self):
        """The values in /metrics by name, summed over their labels."""
        with urllib.request.urlopen(self.url + "/metrics") as response:
            lines = [line.rsplit(" ", 1) for line in response.read().decode().splitlines() if not line.startswith("#")]
        sums = {}
        for key, value in lines:
            name = key.split("{")[0]
            sums[name] = sums.get(name, 0) + float(value)
        return sums

    def step_seconds(self):
        """Time in the engine's steps so far, and the part of it outside the model, in seconds."""
        metrics = self.metrics()
        return [metrics["valora:step_seconds_total"], metrics["valora:step_overhead_seconds_total"]]

    def overhead(self):
        """Share of the engine's step time outside the model, in percent."""
        total, outside = self.step_seconds()
        return 100 * outside / total
