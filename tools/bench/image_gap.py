#!/usr/bin/env python3
"""The longest gap between two tokens of a running stream while large images arrive at `valora serve`.

A client streams text. First it runs alone: the median gap is the time of a decode step. Then another client sends
distinct pictures of noise, one after the other. The model is a copy whose image processor does not shrink them. Prints
the gaps in milliseconds and in decode steps. Several programs are compared in turn, over `--rounds` rounds.

    .venv/bin/python tools/bench/image_gap.py --side 960 --pictures 4
    .venv/bin/python tools/bench/image_gap.py --program old/valora --program build/valora --rounds 3
"""

import argparse
import http.client
import json
import pathlib
import statistics
import tempfile
import threading
import time

from image_memory import picture
from valora_server import Valora

HEADERS = {"Content-Type": "application/json"}


class Stream(threading.Thread):
    """A client that streams one answer after another and records when each token arrived."""

    def __init__(self, server, tokens):
        super().__init__(daemon=True)
        self.host, self.stop, self.answers = server.url.removeprefix("http://"), False, []
        # Forces the same token every time, so that each one is a piece of text.
        token = json.loads(server.post("/tokenize", {"model": "base", "prompt": "a", "add_special_tokens": False})[2])["tokens"][0]
        self.body = json.dumps({"model": "base", "prompt": "a", "max_tokens": tokens, "ignore_eos": True, "stream": True,
                                "temperature": 0, "logit_bias": {str(token): 100}})
        self.start()

    def run(self):
        connection = http.client.HTTPConnection(self.host)
        while not self.stop:
            connection.request("POST", "/v1/completions", self.body, HEADERS)
            response, times = connection.getresponse(), []
            self.answers.append(times)
            for line in response:
                if line.startswith(b"data: {"):
                    times.append(time.perf_counter())
            if not times:
                raise SystemExit("the stream got no token")

    def gaps(self, begin, end):
        """Gaps between the tokens that arrived in this interval."""
        return [b - a for times in list(self.answers) for a, b in zip(times, times[1:]) if begin <= a and b <= end]


def copy_with_large_pictures(model, folder, side):
    """Links the model's files and adds an image processor that keeps pictures of this size unchanged."""
    for path in pathlib.Path(model).resolve().iterdir():
        if path.name != "preprocessor_config.json":
            (folder / path.name).symlink_to(path)
    config = json.loads((pathlib.Path(model) / "preprocessor_config.json").read_text())
    config["max_pixels"] = max(config.get("max_pixels", 0), side * side)
    if "longest_edge" in config.get("size", {}):
        config["size"]["longest_edge"] = config["max_pixels"]
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return str(folder)


def ask_for_picture(server, seed, side):
    """Seconds until the answer's only token."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    image = {"type": "image_url", "image_url": {"url": picture(seed, side)}}
    body = {"model": "base", "max_tokens": 1, "messages": [{"role": "user", "content": [image]}]}
    begin = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), HEADERS)
    response = connection.getresponse()
    text = response.read()
    if response.status != 200:
        raise SystemExit(text.decode())
    return time.perf_counter() - begin


def measure(program, model, options, seed):
    server = Valora(program, model, [], options.threads, options.options.split(), step_tokens=options.step_tokens,
                    model_len=options.model_len)
    try:
        alone = statistics.median(ask_for_picture(server, seed + i, options.side) for i in range(options.pictures))
        stream = Stream(server, options.tokens)
        begin = time.perf_counter()
        time.sleep(2)
        step = statistics.median(stream.gaps(begin, time.perf_counter()))
        begin = time.perf_counter()
        beside = [ask_for_picture(server, seed + 1000 + i, options.side) for i in range(options.pictures)]
        gaps = sorted(stream.gaps(begin, time.perf_counter()))
        stream.stop = True
        longest = gaps[-1]
        print(f"{program}: a decode step {1e3 * step:.2f} ms; gaps with pictures: longest {1e3 * longest:.0f} ms = "
              f"{longest / step:.0f} steps, p99 {1e3 * gaps[int(0.99 * len(gaps))]:.1f} ms, mean {1e3 * statistics.mean(gaps):.1f} ms; "
              f"a picture alone {alone:.2f} s, beside the stream {statistics.median(beside):.2f} s", flush=True)
    finally:
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", action="append", help="build/valora; several take turns")
    parser.add_argument("--model", default="demo/model", help="of a Qwen family")
    parser.add_argument("--side", type=int, default=960, help="of a picture, in pixels")
    parser.add_argument("--pictures", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1000, help="of an answer of the stream")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--step-tokens", type=int, help="--max-num-batched-tokens; its default")
    parser.add_argument("--model-len", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--options", default="", help="further options of the server, by spaces")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = copy_with_large_pictures(options.model, pathlib.Path(folder), options.side)
        for round_number in range(options.rounds):
            for program in options.program or ["build/valora"]:
                measure(program, model, options, 10000 * round_number)


if __name__ == "__main__":
    main()
