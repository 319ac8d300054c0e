#!/usr/bin/env python3
"""The cost of constrained answers: time per token with and without a JSON schema, delay of the first token, compile times.

A random Qwen2-0.5B-shaped checkpoint in bf16 with 151,643 tokens. Its vocabulary is trained on the installed Python
packages, because the time for a mask depends on the text of the tokens. One server; each round tries all variants in turn,
in alternating order, and ratios are taken within a round. Times are the server's own (/metrics), printed next to its CPU
time, which other programs on the machine affect less. Answers with a schema are as long as those without, because the
schemas ask for more than fits. The schemas used for compile times are in tools/bench/schemas.py; each request has a
different title, so that its grammar is new.

    .venv/bin/python tools/bench/constraints.py --rounds 30
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import statistics
import sysconfig
from pathlib import Path

from tokenizers import ByteLevelBPETokenizer

import checkpoints
import schemas
from valora_server import Valora

PHASES = {"decode": "vllm:request_decode_time_seconds_sum", "first": "vllm:time_to_first_token_seconds_sum"}


def trained_tokenizer(folder):
    """Writes the tokenizer.json of checkpoints.write_tokenizer with tokens trained on real text.
    Returns the vocabulary size."""
    packages = Path(sysconfig.get_paths()["purelib"])
    files = [str(path) for pattern in ("*.py", "*.json", "*.md", "*.txt", "*.rst", "*.html") for path in sorted(packages.rglob(pattern))
             if 1000 < path.stat().st_size < 1 << 20]
    bpe = ByteLevelBPETokenizer()
    bpe.train(files, vocab_size=151643, min_frequency=2, show_progress=False)
    checkpoints.write_tokenizer(folder)
    path = os.path.join(folder, "tokenizer.json")
    with open(path) as file:
        data = json.load(file)
    data["model"]["vocab"] = bpe.get_vocab()
    data["model"]["merges"] = json.loads(bpe.to_str())["model"]["merges"]
    with open(path, "w") as file:
        json.dump(data, file)
    return len(bpe.get_vocab())


def model_of(folder):
    """The checkpoint in `folder` with a trained vocabulary, created once."""
    source, _ = checkpoints.make(folder, tower=False, adapters=1, rank=8)
    made = os.path.join(folder, "trained")
    if not os.path.exists(os.path.join(made, "done")):
        shutil.rmtree(made, ignore_errors=True)
        os.makedirs(made)
        for name in set(os.listdir(source)) - {"tokenizer.json"}:
            os.symlink(os.path.abspath(os.path.join(source, name)), os.path.join(made, name))
        tokens = trained_tokenizer(made)
        with open(os.path.join(made, "done"), "w") as file:
            file.write(f"{tokens} tokens\n")
    return made


class Ways:
    """Sends requests to one server in several variants, in turn."""

    def __init__(self, server, temperature):
        self.server, self.temperature, self.seed = server, temperature, 0

    def seconds(self, batch, tokens, schema=None):
        """For a batch of answers: seconds per token after the first, seconds to the first token, and CPU
        seconds per token."""
        body = dict(model="base", messages=[{"role": "user", "content": "What is in the picture?"}], max_tokens=tokens,
                    temperature=self.temperature, ignore_eos=True)
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        bodies = [body | {"seed": self.seed + i} for i in range(batch)]
        self.seed += batch
        before, cpu = self.server.metrics(), self.cpu()
        with concurrent.futures.ThreadPoolExecutor(batch) as pool:
            answers = [json.loads(sent[2]) for sent in pool.map(lambda body: self.server.post("/v1/chat/completions", body), bodies)]
        after, cpu = self.server.metrics(), self.cpu() - cpu
        taken = {name: after[metric] - before[metric] for name, metric in PHASES.items()}
        counts = [answer["usage"]["completion_tokens"] for answer in answers]
        if min(counts) < tokens:
            raise SystemExit(f"an answer ended after {min(counts)} of {tokens} tokens")
        return taken["decode"] / max(1, sum(counts) - batch), taken["first"] / batch, cpu / sum(counts)

    def cpu(self):
        """CPU seconds used by the server process."""
        fields = Path(f"/proc/{self.server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rounds_of(ways, batch, tokens, rounds):
    """Results of Ways.seconds() per round, by schema (None: without)."""
    names = [None, *schemas.LONG]
    times = {name: [] for name in names}
    for round_ in range(rounds + 1):  # the first round is a warm-up, which compiles
        for name in names if round_ % 2 else names[::-1]:
            taken = ways.seconds(batch, tokens, schemas.LONG.get(name))
            if round_:
                times[name].append(taken)
    return times


def spread(values):
    """Formats the median and the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.4f} ({low:.4f} … {high:.4f})"


def compare(ways, options):
    for batch in options.batch:
        times = rounds_of(ways, batch, options.tokens, options.rounds)
        for name in schemas.LONG:
            pairs = list(zip(times[name], times[None], strict=True))
            time, cpu = (spread([a[k] / b[k] for a, b in pairs]) for k in (0, 2))
            plain = 1e3 * statistics.median(b[0] for _, b in pairs)
            first = 1e3 * statistics.median(b[1] for _, b in pairs)
            delay = 1e3 * statistics.median(a[1] - b[1] for a, b in pairs)
            print(f"batch {batch}, {name:5}  {plain:.2f} ms a token without, with a schema × {time}, CPU time × {cpu}; "
                  f"first token {first:.1f} ms, {delay:+.2f} ms", flush=True)


def compile_times(ways, rounds):
    """Time to the first token with a new schema and with the same one cached, in milliseconds."""
    print("schema            bytes  first token with the compilation, later")
    for name, schema in schemas.ALL.items():
        new, cached = [], []
        for round_ in range(rounds):
            titled = schema | {"title": f"{name} {round_}"}
            new.append(ways.seconds(1, 1, titled)[1])
            cached.append(min(ways.seconds(1, 1, titled)[1] for _ in range(2)))
        middle = statistics.median(a - b for a, b in zip(new, cached, strict=True))
        print(f"{name:16} {len(json.dumps(schema)):6} {1e3 * statistics.median(new):8.1f} {1e3 * statistics.median(cached):8.1f}  "
              f"compiled in {1e3 * middle:.1f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/valora")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--tokens", type=int, default=32, help="of an answer")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--temperature", type=float, default=0, help="drawing from all tokens takes longer than from those of a schema")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile-rounds", type=int, default=3)
    parser.add_argument("--folder", default="build/bench/rank8", help="where the checkpoint is kept")
    options = parser.parse_args()
    model = model_of(options.folder)
    server = Valora(options.program, model, [], options.threads)
    try:
        ways = Ways(server, options.temperature)
        print(f"vocabulary of {Path(model, 'done').read_text().strip()}, temperature {options.temperature:g}, medians of {options.rounds} rounds")
        if options.rounds:
            compare(ways, options)
        if options.compile_rounds:
            compile_times(ways, options.compile_rounds)
    finally:
        server.close()


if __name__ == "__main__":
    main()
