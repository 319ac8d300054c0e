"""`valora serve` as a context manager."""

import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from types import TracebackType

from .child import Child
from .program import find_program

LISTENING = re.compile(r"\blistening on (http\S+?);")
StrPath = str | os.PathLike[str]


class ServerFailed(Exception):
    """The server ended, or was not ready in time. The message has the end of its log."""


class Server:
    """Serves a model until the block ends, or this process.

        with valora.Server("model", adapters={"cats": "adapters/cats"}) as server:
            client = openai.OpenAI(base_url=server.base_url, api_key="none")

    `options` are further words of the command line: `["--max-model-len", "4096"]`. Without `--port` among them the
    server takes a free port of 127.0.0.1.
    """

    def __init__(
        self,
        model: StrPath,
        adapters: Mapping[str, StrPath] | None = None,
        *,
        options: Sequence[str] = (),
        timeout: float = 600,
        program: StrPath | None = None,
    ) -> None:
        named = [f"{name}={os.fspath(path)}" for name, path in (adapters or {}).items()]
        # A port of one's own among the options comes later and wins.
        place = [] if "--port" in options else ["--port", "0"]
        self.command = [
            os.fspath(program or find_program()), "--log-level", "info", "serve", "--model", os.fspath(model), *place,
            *(["--lora-modules", *named] if named else []), *options,
        ]  # fmt: skip
        self._timeout = timeout
        self._url = ""
        self._listening = threading.Event()
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`; empty before the start."""
        return self._url

    @property
    def base_url(self) -> str:
        """What clients of the OpenAI API call base_url."""
        return f"{self._url}/v1"

    @property
    def log(self) -> str:
        """The last lines of the server's output."""
        return self._child.log if self._child else ""

    @property
    def pid(self) -> int:
        return self._child.pid if self._child else 0

    def start(self) -> None:
        """Returns once the server is ready."""
        if self._child:
            raise ServerFailed("the server was started already")
        deadline = time.monotonic() + self._timeout
        self._child = Child(self.command, self._read)
        try:
            while not self._ready():
                if self._child.ended(0.02):
                    raise ServerFailed(f"the server ended with status {self._child.status}:\n{self.log}")
                if time.monotonic() > deadline:
                    raise ServerFailed(f"the server was not ready within {self._timeout:g} s:\n{self.log}")
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout: float = 30) -> None:
        """Lets running requests end for so many seconds."""
        if self._child:
            self._child.stop(timeout)

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _read(self, line: str) -> None:
        found = LISTENING.search(line)
        if found and not self._url:
            self._url = found.group(1)

    def _ready(self) -> bool:
        if not self._url:
            return False
        try:
            with urllib.request.urlopen(f"{self._url}/ready", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False
