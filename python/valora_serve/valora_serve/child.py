"""`valora serve` as a child process that ends with its parent."""

import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from . import die_with_parent

SERVING = re.compile(r"^\s*serving\s+(http://\S+?)/v1\b")
LAST_LINES = 40  # shown if the program ends before it serves


class ChildFailed(Exception):
    """The program ended, or did not start serving in time."""


class Child:
    """One running program. `log` receives each line of its output, `on_exit` its return code if it ends without
    being stopped."""

    def __init__(
        self,
        command: Sequence[str],
        log: Callable[[str], None],
        on_exit: Callable[[int], None] = lambda code: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = list(command)
        self._log = log
        self._on_exit = on_exit
        self._environment = dict(os.environ) | dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self._lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._stopping = False
        self._served_or_ended = threading.Event()
        self._ended = threading.Event()
        self.url = ""
        # The kernel watches the thread that forked, not the process: this one lives as long as the child.
        self._keeper = threading.Thread(target=self._keep, name="valora-keeper", daemon=True)

    def start(self, timeout: float) -> str:
        """Starts the program; returns the server's address once it serves."""
        self._keeper.start()
        in_time = self._served_or_ended.wait(timeout)
        if self.url:
            return self.url
        if not in_time:
            self.kill()
        why = "ended" if in_time else f"did not serve within {timeout:g} s"
        raise ChildFailed(f"{self._command[0]} {why}:\n" + "\n".join(self._lines))

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    @property
    def alive(self) -> bool:
        return bool(self.url) and not self._ended.is_set()

    def stop(self, timeout: float) -> None:
        """Gives running requests this long to end, then kills the program."""
        self._stopping = True
        self._signal(signal.SIGTERM)
        if not self._ended.wait(timeout):
            self.kill()

    def kill(self) -> None:
        self._stopping = True
        self._signal(signal.SIGKILL)
        self._ended.wait(10)

    def _signal(self, number: int) -> None:
        if self._process and not self._ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _keep(self) -> None:
        code = -1
        try:
            keeper = [sys.executable, "-S", "-E", die_with_parent.__file__, str(os.getpid())]
            self._process = subprocess.Popen(
                [*keeper, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=self._environment,
            )
            assert self._process.stdout is not None
            for line in self._process.stdout:
                self._read(line.rstrip("\n"))
            code = self._process.wait()
        except OSError as error:
            self._lines.append(str(error))
        finally:
            self._ended.set()
            self._served_or_ended.set()
        if not self._stopping:
            self._on_exit(code)

    def _read(self, line: str) -> None:
        self._lines.append(line)
        self._log(line)
        found = SERVING.match(line)
        if found and not self.url:
            self.url = found.group(1)
            self._served_or_ended.set()
