"""Starts the demo's server, sends it all samples at once, and prints the answers. Standard library only.

    python tools/demo/show.py --port 8000 [--oneshot] -- build/valora serve --port 8000 --model demo/model …

Without --oneshot the server keeps running until Ctrl-C. Exit status 0 if every request was answered.
"""

import argparse
import json
import signal
import sys
from pathlib import Path

from batch import ask_all
from hints import hints
from server_process import ServerProcess, StartError
from table import summary, table

DEMO = Path(__file__).resolve().parents[2] / "demo"


def show(server, base, demo):
    """Sends the requests and prints the answers; returns the number of failed requests."""
    samples = json.loads((demo / "samples.json").read_text())
    adapters = sorted({s["adapter"] for s in samples if s["adapter"]})
    videos = sum(s["modality"] == "video" for s in samples)
    print(f"\nAsking {len(samples)} questions at once: {len(samples) - videos} about images and {videos} about videos, "
          f"to {len(adapters)} adapters and to the base model.\n", flush=True)
    outcome = ask_all(server.url, base, demo, samples)
    print(table(outcome.answers))
    print(summary(outcome, demo))
    return sum(a.error is not None for a in outcome.answers)


def serve_on(server):
    print("\nServing; Ctrl-C ends.", flush=True)
    try:
        return server.process.wait()
    except KeyboardInterrupt:
        print("\nStopping.")
        return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--base", default="valora-demo", help="name that the base model is served under")
    parser.add_argument("--demo", type=Path, default=DEMO, help="folder with samples.json and samples/")
    parser.add_argument("--oneshot", action="store_true", help="end after the table")
    parser.add_argument("command", nargs="+", help="how the server is started")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    demo = options.demo.resolve()
    try:
        with ServerProcess(options.command, options.port) as server:
            failed = show(server, options.base, demo)
            if options.oneshot:
                return 1 if failed else 0
            print(hints(server.url, demo))
            return serve_on(server) or (1 if failed else 0)
    except StartError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
