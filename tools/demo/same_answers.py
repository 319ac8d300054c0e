"""Asks two builds of valora all questions of the demo in fp32; the answers must be equal. Standard library only.

    python tools/demo/same_answers.py build/valora COMMAND…

In bf16, instruction sets add in different orders, and an answer may differ. COMMAND starts the other build, a run under
qemu-user, say. Exit status 0 if all answers are equal.
"""

import json
import socket
import sys

import batch
from server_process import ServerProcess
from show import DEMO

SERVE = ["--log-level", "warning", "serve", "--model", DEMO / "model", "--served-model-name", "valora-demo", "--manifest", DEMO / "manifest.json",
         "--allowed-local-media-path", DEMO, "--host", "127.0.0.1", "--dtype", "float32", "--threads", "1"]
PATIENCE = 900  # seconds that a start under qemu may take
batch.TIMEOUT = 7200


def answers(command):
    """The answer of each sample, in their order."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    samples = json.loads((DEMO / "samples.json").read_text())
    with ServerProcess([*command, *SERVE, "--port", str(port)], port, PATIENCE) as server:
        return batch.ask_all(server.url, "valora-demo", DEMO, samples).answers


def main():
    first, *other = sys.argv[1:]
    if not other:
        sys.exit(__doc__)
    wanted, found = answers([first]), answers(other)
    different = 0
    for a, b in zip(wanted, found, strict=True):
        if a.error or b.error or a.text != b.text:
            different += 1
            print(f"{a.sample['id']}: {a.error or a.text!r}, and {b.error or b.text!r}")
    print(f"{len(wanted) - different} of {len(wanted)} answers are equal")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
