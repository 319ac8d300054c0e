"""The program on CPUs without the newer instruction sets, as QEMU emulates them: no illegal instruction."""

import pathlib
import re
import subprocess
import time

# QEMU's name of a CPU, and the instruction set that the program must choose on it.
CPUS = [
    ("Haswell", "avx2"),  # no AVX-512
    ("SandyBridge", "portable"),  # no AVX2
    ("Nehalem", "portable"),  # SSE4.2 alone
]


def on(cpu: str, *command: str) -> str:
    words = ["qemu-x86_64-static", "-cpu", cpu, *command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"on {cpu}: status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def check(tree: pathlib.Path) -> str:
    program, demo = str(tree / "bin/valora"), tree / "share/valora/demo"
    seen, answers = [], set()
    for cpu, wanted in CPUS:
        start = time.monotonic()
        found = re.search(r"instruction set (\S+),", on(cpu, program, "--version"))
        if not found or found[1] != wanted:
            raise RuntimeError(f"on {cpu} the program chose {found and found[1]}, not {wanted}")
        generate = ["generate", "--model", str(demo / "model"), "--dtype", "float32", "--threads", "1", "--pool-memory", "64M",
                    "--adapter", str(demo / "adapters/adapter-1"), "--image", str(demo / "samples/digits-1.png"),
                    "--prompt", "Which digit is this?", "--max-tokens", "4"]
        answers.add(on(cpu, program, "--log-level", "error", *generate).strip())
        seen.append(f"{cpu} ({wanted}) {time.monotonic() - start:.0f} s")
    if len(answers) != 1 or not all(answers):
        raise RuntimeError(f"different answers: {answers}")
    return f"{', '.join(seen)}; each answered {answers.pop()!r}"
