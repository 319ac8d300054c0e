"""systemd's Type=notify: the server says when it is ready."""

import os
import socket

import pytest

from serving import ServedProcess, make_folders


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return make_folders(tmp_path_factory.mktemp("folders"))


def test_the_service_manager_hears_when_requests_can_come(folders, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(30)
        server = ServedProcess("--model", str(folders["model"]), "--threads", "1", "--pool-memory", "64M",
                               env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")})
        try:
            assert manager.recv(100) == b"READY=1"
            assert server.request("GET", "/ready")[0] == 200
        finally:
            server.process.terminate()
            server.process.communicate(timeout=30)
