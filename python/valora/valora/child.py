"""A child process that ends with this one, and the end of its log."""

import collections
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence

from . import die_with_parent

LAST_LINES = 40


class Child:
    """Runs `command`; `on_line` receives each line of its output."""

    def __init__(self, command: Sequence[str], on_line: Callable[[str], None]) -> None:
        self._command = list(command)
        self._on_line = on_line
        self._lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._process: subprocess.Popen[str] | None = None
        self._started = threading.Event()
        self._ended = threading.Event()
        # The kernel watches the thread that forked, not the process: this one lives as long as the child.
        self._keeper = threading.Thread(target=self._keep, name="valora-child", daemon=True)
        self._keeper.start()
        self._started.wait()

    @property
    def log(self) -> str:
        """The last lines of its output."""
        return "\n".join(self._lines)

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def ended(self, timeout: float) -> bool:
        """Waits at most so many seconds for its end."""
        return self._ended.wait(timeout)

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs, or if it could not be started."""
        return self._process.returncode if self._process and self._ended.is_set() else None

    def stop(self, timeout: float) -> None:
        """Asks it to end, and kills it if it does not within so many seconds."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process and not self._ended.is_set():
                self._process.send_signal(number)
            if self._ended.wait(timeout):
                return

    def _keep(self) -> None:
        try:
            keeper = [sys.executable, "-S", "-E", die_with_parent.__file__, str(os.getpid())]
            self._process = subprocess.Popen(
                [*keeper, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            self._started.set()
            assert self._process.stdout is not None
            for line in self._process.stdout:
                self._lines.append(line.rstrip("\n"))
                self._on_line(line.rstrip("\n"))
            self._process.wait()
        except OSError as error:
            self._lines.append(str(error))
        finally:
            self._started.set()
            self._ended.set()
