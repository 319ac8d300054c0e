"""Frames pushed over a WebSocket, by the client of the package websockets."""

import io
import json
import pathlib
import ssl
import threading
import urllib.request

import pytest
from PIL import Image
from test_streams import USERS, StreamServer
from test_tls import make_certificate, served
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

DEMO = pathlib.Path(__file__).parents[2] / "demo"
DIGIT = (DEMO / "samples/digits-1.png").read_bytes()


def socket_of(server, path, key=None, scheme="ws", **options):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return connect(f"{scheme}://127.0.0.1:{server.port}{path}/frames", additional_headers=headers, max_size=None, **options)


def send(client, message):
    client.send(message)
    return json.loads(client.recv(timeout=60))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("web-socket")
    (folder / "users.yaml").write_text(USERS)
    server = StreamServer(folder / "kept", "--users", folder / "users.yaml")
    yield server
    assert server.stop() == 0


@pytest.fixture
def stream(server):
    stream = server.begin("push", ["coins"], key="sk-ann-0001")
    yield stream
    assert server.ask("DELETE", stream, key="sk-ann-0001")[0] == 200


def test_each_message_is_a_frame_and_its_answer_is_that_of_a_push(server, stream):
    with socket_of(server, stream, "sk-ann-0001") as client:
        for number in (1, 2, 3):
            assert send(client, DIGIT) == {"stream": stream.rsplit("/", 1)[1], "frame": number}
        assert server.ask("POST", f"{stream}/frames", DIGIT, "sk-ann-0001")[1]["frame"] == 4
        client.send([DIGIT[:100], DIGIT[100:101], DIGIT[101:]])  # a message in three parts
        assert json.loads(client.recv(timeout=60))["frame"] == 5
        client.ping().wait(10)
    server.wait_until(lambda: server.events(stream, "answers", key="sk-ann-0001"), "an answer")


def test_a_bad_message_is_answered_and_the_next_one_counts(server, stream):
    with socket_of(server, stream, "sk-ann-0001") as client:
        assert "error" in send(client, b"no picture") and "error" in send(client, b"")
        assert send(client, DIGIT)["frame"] == 1


def test_a_large_picture_is_taken_and_a_message_beyond_the_limit_ends_the_socket(server, stream):
    large = io.BytesIO()
    Image.effect_noise((1600, 1600), 100).save(large, "PNG")
    with socket_of(server, stream, "sk-ann-0001") as client:
        assert send(client, large.getvalue())["frame"] == 1
    with socket_of(server, stream, "sk-ann-0001") as client, pytest.raises(ConnectionClosed) as closed:
        client.send([bytes(1 << 20)] * 65)
        client.recv(timeout=60)
    assert closed.value.rcvd.code == 1009
    assert send_once(server, stream)["frame"] == 2


def send_once(server, stream):
    with socket_of(server, stream, "sk-ann-0001") as client:
        return send(client, DIGIT)


def test_only_the_owner_pushes(server, stream):
    with pytest.raises(InvalidStatus) as refused:
        socket_of(server, stream)
    assert refused.value.response.status_code == 401
    with socket_of(server, stream, "sk-bob-0002") as client:
        assert "No stream found" in send(client, DIGIT)["error"]["message"]
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(timeout=60)
    assert closed.value.rcvd.code == 1008


def test_pages_of_other_origins_are_refused(server, stream):
    with pytest.raises(InvalidStatus) as refused:
        socket_of(server, stream, "sk-ann-0001", origin="http://evil.example")
    assert refused.value.response.status_code == 403
    with socket_of(server, stream, "sk-ann-0001", origin=f"http://127.0.0.1:{server.port}") as client:
        assert send(client, DIGIT)["frame"] == 1


def test_other_paths_are_no_sockets(server):
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{server.port}/v1/models", additional_headers={"Authorization": "Bearer sk-ann-0001"})
    assert refused.value.response.status_code == 200


def test_sockets_do_not_wait_for_each_other(server):
    streams = [server.begin("push", ["coins"], key="sk-ann-0001") for _ in range(4)]
    frames = {}

    def push(stream):
        with socket_of(server, stream, "sk-ann-0001") as client:
            frames[stream] = [send(client, DIGIT)["frame"] for _ in range(20)]
    threads = [threading.Thread(target=push, args=(stream,)) for stream in streams]
    with socket_of(server, streams[0], "sk-ann-0001"):  # sends nothing
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert frames == {stream: list(range(1, 21)) for stream in streams}
    for stream in streams:
        server.ask("DELETE", stream, key="sk-ann-0001")


def test_a_server_that_stops_says_so(tmp_path):
    server = StreamServer(tmp_path / "kept")
    stream = server.begin("push", ["coins"])
    with socket_of(server, stream) as client:
        assert send(client, DIGIT)["frame"] == 1
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        with pytest.raises(ConnectionClosed) as closed:
            client.recv(timeout=60)
    assert closed.value.rcvd.code == 1001
    stopping.join(60)


def test_over_tls(tmp_path):
    key, certificate = make_certificate(tmp_path, "server")
    with served({"model": DEMO / "model"}, "--ssl-certfile", certificate, "--ssl-keyfile", key, "--streams-dir", tmp_path / "kept") as url:
        trusted = ssl.create_default_context(cafile=certificate)
        body = json.dumps({"source": "push", "skills": [{"model": "tiny", "question": "What is it?"}]}).encode()
        request = urllib.request.Request(f"{url}/v1/streams", body, {"Content-Type": "application/json"})
        stream = json.load(urllib.request.urlopen(request, context=trusted))["id"]
        with connect(f"{url.replace('https', 'wss')}/v1/streams/{stream}/frames", ssl=trusted) as client:
            assert [send(client, DIGIT)["frame"] for _ in range(3)] == [1, 2, 3]
            large = io.BytesIO()
            Image.effect_noise((1600, 1600), 100).save(large, "PNG")
            assert send(client, large.getvalue())["frame"] == 4
