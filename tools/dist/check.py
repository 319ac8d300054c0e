#!/usr/bin/env python3
"""Tries each artefact where nothing else is: `make test-dist` calls it. Needs root.

    tools/dist/check.py [--build build] [--output dist] [tar wheel deb image emulated …]

A bare Debian root per artefact, read-only, as an unknown user without a home, with the loopback interface alone: the
answers to the demo's questions must be those of the built program. `emulated`: the program on older CPUs, by QEMU.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable

import ask
import emulated
import rooms
from image import UNSAFE_IO, debian_sources
from machines import ROOT
from names import Release, this_release
from tree import run

DEMO = "/share/valora/demo"
SCRIPT = """
import json, time, urllib.request, valora
start = time.monotonic()
with valora.Server(valora.DEMO / "model", adapters={"digits": valora.DEMO / "adapters/adapter-1"}) as server:
    body = {"model": "digits", "temperature": 0, "messages": [{"role": "user", "content": "Hello"}]}
    request = urllib.request.Request(server.base_url + "/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    answer = json.load(urllib.request.urlopen(request, timeout=60))["choices"][0]["message"]["content"]
try:
    valora.Server("/nowhere").start()
except valora.ServerFailed as error:
    failed = str(error)
print(json.dumps([answer, failed]))
"""


class Checks:
    def __init__(self, release: Release, build: pathlib.Path, output: pathlib.Path) -> None:
        self.release, self.build, self.output = release, build, output
        self.cache = output / "work"
        self.root = output / "work/root"
        self.wanted = self.built_answers()

    def built_answers(self) -> dict[str, str]:
        """Of the program in the build folder."""
        demo = ROOT / "demo"
        with tempfile.TemporaryDirectory() as folder:
            found = ask.try_server([str(self.build / "valora"), *ask.serve_options(demo)], demo, pathlib.Path(folder) / "log")
        answers: dict[str, str] = found["answers"]
        if len(answers) < 5 or not all(answers.values()):
            raise RuntimeError(f"the built program's answers: {answers}")
        return answers

    def serve(self, start: float, program: str, demo: str) -> str:
        """Serves in the root; start: when the work on the artefact began. Returns what was seen."""
        installed = time.monotonic()
        found = rooms.inside(self.root, demo, program, *ask.serve_options(pathlib.PurePosixPath(demo)))
        different = [name for name, text in self.wanted.items() if found["answers"].get(name) != text]
        if different:
            raise RuntimeError(f"other answers than the built program's: {', '.join(different)}")
        return (f"{len(self.wanted)} answers equal; installed in {installed - start:.1f} s, first answer "
                f"{found['seconds']:.1f} s after the start, {installed - start + found['seconds']:.1f} s after the artefact")

    def version(self, program: str) -> None:
        shown = rooms.inside(self.root, "", program, "--version", answers=False)
        if shown["status"] or self.release.version not in shown["output"]:
            raise RuntimeError(f"{program} --version: {shown}")

    def tar(self) -> str:
        rooms.make_root(self.root, self.cache)
        start = time.monotonic()
        (self.root / "opt").mkdir(exist_ok=True)
        run("tar", "-xf", self.output / self.release.archive, "-C", self.root / "opt")
        place = f"/opt/{self.release.name}"
        seen = self.serve(start, f"{place}/bin/valora", place + DEMO)
        self.version(f"{place}/bin/valora")
        return seen

    def wheel(self) -> str:
        rooms.make_root(self.root, self.cache, "python3-venv")
        name = self.release.wheel
        run("cp", self.output / name, self.root / name)
        start = time.monotonic()
        rooms.call(self.root, "python3", "-m", "venv", "/opt/venv")
        rooms.call(self.root, "/opt/venv/bin/pip", "install", "--quiet", "--no-index", f"/{name}")
        (self.root / name).unlink()
        package = next((self.root / "opt/venv/lib").glob("python3*/site-packages/valora"))
        place = "/" + str(package.relative_to(self.root)) + "/tree"
        seen = self.serve(start, "/opt/venv/bin/valora", place + DEMO)
        shown = rooms.inside(self.root, "", "/opt/venv/bin/python", "-c", SCRIPT, answers=False)
        if shown["status"]:
            raise RuntimeError(f"valora.Server: {shown['output'][-3000:]}")
        answer, failed = json.loads(shown["output"].splitlines()[-1])
        if not answer or "/nowhere" not in failed:
            raise RuntimeError(f"valora.Server answered {answer!r}, and failed with {failed!r}")
        return seen

    def deb(self) -> str:
        """apt fetches what the package depends on, so this takes a network until it is installed."""
        rooms.remove(self.root)
        hooks = [f"--customize-hook=copy-in {self.output / self.release.debian_package} /tmp",
                 f"--customize-hook=chroot \"$1\" apt-get install -y -qq --no-install-recommends /tmp/{self.release.debian_package}"]
        start = time.monotonic()
        run("mmdebstrap", "--quiet", UNSAFE_IO, "--variant=minbase", "--format=directory", *hooks, "bookworm", self.root, debian_sources())
        seen = self.serve(start, "/usr/bin/valora", "/usr" + DEMO)
        self.version("/usr/bin/valora")
        passwd = (self.root / "etc/passwd").read_text()
        if "\nvalora:" not in passwd:
            raise RuntimeError("the package made no user valora")
        return seen + " (the installation includes a new Debian and the packages that it depends on)"

    def image(self) -> str:
        with tempfile.TemporaryDirectory(dir=self.cache) as folder:
            layout = pathlib.Path(folder) / "layout"
            layout.mkdir()
            start = time.monotonic()
            run("tar", "-xf", self.output / self.release.image, "-C", layout)
            run("umoci", "unpack", "--image", f"{layout}:{self.release.version}", f"{folder}/bundle")
            rooms.remove(self.root)
            pathlib.Path(folder, "bundle/rootfs").rename(self.root)
            config = json.loads(pathlib.Path(folder, "bundle/config.json").read_text())
        if config["process"]["args"][0] != "valora" or config["process"]["user"]["uid"] != 10001:
            raise RuntimeError(f"the image starts {config['process']}")
        return self.serve(start, "/usr/local/bin/valora", "/usr/local" + DEMO)

    def emulated(self) -> str:
        return emulated.check(self.output / "work/tree")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("kinds", nargs="*", help="all by default")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("test-dist: bare roots need root: run it as root", file=sys.stderr)
        return 1
    checks = Checks(this_release(), options.build.resolve(), options.output.resolve())
    jobs: dict[str, Callable[[], str]] = {"tar": checks.tar, "wheel": checks.wheel, "deb": checks.deb, "image": checks.image,
                                          "emulated": checks.emulated}
    failed = 0
    for kind in options.kinds or list(jobs):
        try:
            print(f"test-dist: {kind}: {jobs[kind]()}", flush=True)
        except (RuntimeError, OSError) as error:
            failed += 1
            print(f"test-dist: {kind}: failed: {error}", file=sys.stderr, flush=True)
    rooms.remove(checks.root)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
