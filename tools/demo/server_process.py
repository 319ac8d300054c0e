"""Runs the server as a child process that ends with the demo."""

import ctypes
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


class StartError(Exception):
    pass


def die_with_parent():
    """Runs in the child: if the parent is killed, the kernel ends the child."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def check_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise StartError(f"port {port} of 127.0.0.1 cannot be used ({error.strerror}); "
                             f"name another one: make demo PORT={port + 1}") from error


class ServerProcess:
    def __init__(self, command, port, patience=120):
        """`command` must serve on `port`."""
        check_free(port)
        self.url = f"http://127.0.0.1:{port}"
        # A separate session: Ctrl-C reaches only this process, which then stops the server.
        self.process = subprocess.Popen(command, start_new_session=True,
                                        preexec_fn=die_with_parent)  # noqa: PLW1509 (no threads yet)
        try:
            self.wait_until_healthy(patience)
        except BaseException:
            self.stop()
            raise

    def wait_until_healthy(self, patience):
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise StartError(f"the server ended with status {self.process.returncode} before it answered")
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise StartError(f"the server did not answer within {patience} s")

    def stop(self):
        """Stops the server; kills it if it does not end soon."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
