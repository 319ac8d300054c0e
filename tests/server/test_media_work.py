"""Media preparation ends with its request, and slow media do not delay others."""

import base64
import http.client
import io
import json
import signal
import socket
import threading
import time

import pytest
from PIL import Image

from serving import Server, chat_body, image_part, picture

pytestmark = pytest.mark.alone

CHAT = "/v1/chat/completions"
PREPARING = "valora:num_requests_preparing"


@pytest.fixture
def server(folders):
    server = Server({"model": folders["model"]}, "--allow-media-urls", "--allowed-media-domains", "127.0.0.1", "--media-workers", "1",
                    "--limit-mm-per-prompt", '{"image": 16, "video": 4}')
    yield server
    server.stop()


@pytest.fixture
def silent_host():
    """The URL of a host that accepts connections but never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as host:
        yield f"http://127.0.0.1:{host.getsockname()[1]}/clip.mp4"


def video_part(url):
    return {"type": "video_url", "video_url": {"url": url}}


def long_video(seed, frames=48, side=1800):
    """Takes seconds to decode: large frames that compress well."""
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((side, side + seed)).convert("RGB").save(buffer, "PNG", compress_level=1)
    frame = base64.b64encode(buffer.getvalue()).decode()
    return video_part("data:video/jpeg;base64," + ",".join([frame] * frames))


class Departing:
    """Clients that send requests and do not wait for the answers."""

    def __init__(self, server, contents):
        self.connections = []
        for content in contents:
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            body = json.dumps(chat_body("tiny", [content])).encode()
            connection.request("POST", CHAT, body, {"Content-Type": "application/json"})
            self.connections.append(connection)

    def leave(self):
        for connection in self.connections:
            connection.close()


def terminate(server):
    """Sends SIGTERM once the server handles it; it answers requests slightly before that."""
    def handled():
        with open(f"/proc/{server.process.pid}/status") as status:
            mask = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
        return mask >> (signal.SIGTERM - 1) & 1

    server.wait_until(handled, "a handler of SIGTERM")
    server.process.terminate()


def seconds_of(action):
    begin = time.monotonic()
    action()
    return time.monotonic() - begin


def test_silent_hosts_delay_only_their_own_client(server, silent_host):
    ask = lambda: server.chat("tiny", [image_part(picture(1))], max_tokens=1)
    crowd = Departing(server, [video_part(silent_host)] * 40)
    server.wait_until(lambda: server.metric(PREPARING) == 40, "all wait for the host")
    assert seconds_of(ask) < 5, "their downloads take 30 s each"
    crowd.leave()
    server.wait_until(lambda: server.metric(PREPARING) == 0, "the end of their downloads")


def test_stop_ends_downloads(server, silent_host):
    clients = Departing(server, [video_part(silent_host)] * 10)
    server.wait_until(lambda: server.metric(PREPARING) == 10, "all wait for the host")
    terminate(server)
    time.sleep(0.2)
    assert server.process.poll() is None, "the first signal lets running requests end"
    server.process.terminate()
    assert seconds_of(lambda: server.process.wait(20)) < 5
    clients.leave()


def test_drain_does_not_wait_for_disconnected_clients(server):
    clients = Departing(server, [long_video(seed) for seed in range(6)])
    server.wait_until(lambda: server.metric(PREPARING) >= 3, "most are being prepared")
    clients.leave()
    terminate(server)
    assert seconds_of(lambda: server.process.wait(60)) < 5


def test_long_videos_do_not_delay_images(server):
    clients = Departing(server, [long_video(seed) for seed in range(6)])
    server.wait_until(lambda: server.metric(PREPARING) >= 3, "most are being prepared")
    server.chat("tiny", [image_part(picture(1))], max_tokens=1)
    assert server.metric(PREPARING) >= 1, "the videos were still being prepared"
    clients.leave()
    server.wait_until(lambda: server.metric(PREPARING) == 0, "their end")


def test_request_with_many_images_does_not_block_others(server):
    """All requests come from one client, but its requests take turns too."""
    large = [{"type": "image_url", "image_url": {"url": large_picture(seed)}} for seed in range(16)]
    done = threading.Event()

    def ask_large():
        server.request("POST", CHAT, chat_body("tiny", large, max_tokens=1))
        done.set()

    thread = threading.Thread(target=ask_large)
    thread.start()
    server.wait_until(lambda: server.metric(PREPARING) == 1, "it is being prepared")
    server.chat("tiny", [image_part(picture(2))], max_tokens=1)
    assert not done.is_set()
    thread.join()


def large_picture(seed):
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((3000, 3000 + seed)).convert("RGB").save(buffer, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def test_prepared_images_do_not_wait_for_others(server):
    known = [image_part(picture(seed)) for seed in range(3)]
    server.chat("tiny", known, max_tokens=1)
    others = Departing(server, [{"type": "image_url", "image_url": {"url": large_picture(100 + seed)}} for seed in range(24)])
    server.wait_until(lambda: server.metric(PREPARING) >= 6, "most are being prepared")
    server.chat("tiny", known, max_tokens=1)
    assert server.metric(PREPARING) >= 1, "the others were still being prepared"
    others.leave()
    server.wait_until(lambda: server.metric(PREPARING) == 0, "their end")
