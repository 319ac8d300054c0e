#!/usr/bin/env python3
"""Runs in namespaces of its own: closes a root, runs a program in it and, if it serves, asks it. Prints JSON.

    inside.py ROOT UID:GID DEMO ask|run PROGRAM [ARGUMENT…]

DEMO: the demo's folder in the root, whose questions are asked.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import ask


def close(root: pathlib.Path) -> None:
    """Makes the root read-only, with /proc and the devices that every program may expect."""
    commands: list[list[str | pathlib.Path]] = [
        ["ip", "link", "set", "lo", "up"],
        ["mount", "--make-rprivate", "/"],
        ["mount", "--bind", root, root],
        ["mount", "-t", "proc", "proc", root / "proc"],
    ]
    (root / "dev").mkdir(exist_ok=True)
    (root / "proc").mkdir(exist_ok=True)
    for name in ("null", "zero", "urandom"):
        (root / "dev" / name).touch()
        commands.append(["mount", "--bind", f"/dev/{name}", root / "dev" / name])
    commands.append(["mount", "-o", "remount,bind,ro", root])
    for command in commands:
        subprocess.run(command, check=True)


def main() -> int:
    root, user, demo, mode, *command = sys.argv[1:]
    close(pathlib.Path(root))
    closed = ["chroot", f"--userspec={user}", "--groups=", root, "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", *command]
    if mode == "run":
        done = subprocess.run(closed, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(json.dumps({"status": done.returncode, "output": done.stdout}))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(ask.try_server(closed, pathlib.Path(root + demo), pathlib.Path(folder) / "log")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
