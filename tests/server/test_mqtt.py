"""Streams published to an MQTT broker, Debian's Mosquitto: events, retained topics, Home Assistant's discovery, and a
broker that is gone (docs/streams.md)."""

import io
import json
import subprocess
import time

import pytest
from PIL import Image
from test_streams import ASKED, BOXES, SAMPLES, StreamServer

from brokers import MOSQUITTO, PASSWORD, USER, Broker, Router, Subscriber, retained

pytestmark = pytest.mark.skipif(not MOSQUITTO, reason="there is no mosquitto")
DIGITS = {"model": "digits", "event": {"when": {"changes": True}}}
COINS = BOXES | {"event": {"when": {"boxes": {"min": 1}}}}


class MqttServer(StreamServer):
    """With its log in a file."""

    def __init__(self, folder, *options, **process_options):
        folder.mkdir(exist_ok=True)
        self.log = folder / "log"
        with self.log.open("a") as log:
            super().__init__(folder / "kept", *options, log_level="debug", stderr=log, **process_options)

    def mqtt(self):
        return self.ask("GET", "/v1/streams")[1]["mqtt"]

    def until_connected(self, connections=1):
        self.wait_until(lambda: self.mqtt()["connected"] and self.mqtt()["connections"] >= connections, "the broker is connected")

    def settle(self):
        """Waits until the broker has all."""
        self.wait_until(lambda: self.mqtt()["waiting"] == 0, "nothing waits")
        time.sleep(0.1)

    def stop(self):
        status = super().stop()
        assert PASSWORD not in self.log.read_text()
        return status


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    broker = Broker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def server(broker, tmp_path_factory):
    server = MqttServer(tmp_path_factory.mktemp("mqtt"), "--mqtt-url", broker.url())
    server.until_connected()
    yield server
    assert server.stop() == 0
    assert retained(broker)["valora/status"] == b"offline"


@pytest.fixture
def subscriber(broker):
    subscriber = Subscriber(broker)
    yield subscriber
    subscriber.stop()


def device_topics(topics, stream):
    return sorted(topic for topic in topics if topic.startswith("homeassistant/") and stream.rsplit("/", 1)[1] in topic)


def test_events_answers_and_states_are_published(server, broker, subscriber):
    stream = server.begin("push", [COINS, "digits"], name="Gate 1", mqtt={"snapshots": True})
    described = server.ask("GET", stream)[1]
    base = described["mqtt_topic"]
    assert base == "valora/streams/Gate_1"
    server.wait_until(lambda: subscriber.last(f"{base}/skills/coins/active") == b"OFF", "the event is not active yet")
    answers = server.push(stream, "coins-1.png")["answers"]
    server.wait_until(lambda: subscriber.last(f"{base}/skills/coins/active") == b"ON", "the event begins")
    server.wait_until(lambda: subscriber.last(f"{base}/skills/coins/snapshot"), "the snapshot")
    for skill, answer in answers.items():
        told = json.loads(subscriber.last(f"{base}/skills/{skill}/answer"))
        assert told["content"] == answer["content"] and told["frame"] == 1
    assert subscriber.of(f"{base}/state") == [b"waiting", b"running"] or subscriber.of(f"{base}/state") == [b"paused", b"waiting", b"running"]
    events = [e for e in server.events(stream) if e["type"] != "answers"]
    assert [json.loads(e) for e in subscriber.of(f"{base}/events")] == events and [e["type"] for e in events] == ["state", "start"]
    snapshot = subscriber.last(f"{base}/skills/coins/snapshot")
    assert Image.open(io.BytesIO(snapshot)).format == "JPEG"
    assert Image.open(io.BytesIO(snapshot)).size == Image.open(SAMPLES / "coins-1.png").size
    kept = retained(broker)
    assert kept["valora/status"] == b"online" and kept[f"{base}/state"] == b"running" and kept[f"{base}/skills/coins/active"] == b"ON"
    assert f"{base}/events" not in kept
    assert PASSWORD not in json.dumps(server.ask("GET", "/v1/streams")) + server.request("GET", "/v1/stats")[1] + server.request("GET", "/metrics")[1]
    assert server.metric("valora:mqtt_connected") == 1 and server.metric("valora:mqtt_messages") > 5
    server.ask("DELETE", stream)


def test_home_assistant_discovers_a_stream_and_forgets_it(server, broker):
    stream = server.begin("push", [COINS, "digits"], name="hall", mqtt={"snapshots": True})
    server.settle()
    kept = retained(broker)
    topics = device_topics(kept, stream)
    assert [topic.split("/")[1] + "/" + topic.split("/")[3] for topic in topics] == [
        "binary_sensor/coins_active", "image/coins_snapshot", "sensor/coins_answer", "sensor/digits_answer", "sensor/state"]
    configs = [json.loads(kept[topic]) for topic in topics]
    assert len({config["unique_id"] for config in configs}) == 5 and {config["device"]["name"] for config in configs} == {"hall"}
    for config in configs:  # what they name is there, apart from what no frame has made yet
        for place in config["availability"]:
            assert place["topic"] in kept
    assert configs[0]["state_topic"] in kept and configs[4]["state_topic"] in kept
    silent = server.begin("push", ["digits"], name="silent", mqtt=False)
    assert "mqtt_topic" not in server.ask("GET", silent)[1]
    server.push(silent, "digits-1.png")
    server.push(stream, "coins-1.png")
    server.settle()
    assert not device_topics(retained(broker), silent) and not [topic for topic in retained(broker) if "silent" in topic]
    for one in (stream, silent):
        server.ask("DELETE", one)
    server.settle()
    assert [topic for topic in retained(broker) if "hall" in topic or stream.rsplit("/", 1)[1] in topic] == []


def test_answers_are_events_on_request(server, subscriber):
    stream = server.begin("push", ["digits"], name="all", mqtt={"answers": True})
    server.push(stream, "digits-1.png")
    topic = "valora/streams/all/events"
    server.wait_until(lambda: len(subscriber.of(topic)) == 2, "two events")
    assert [json.loads(e) for e in subscriber.of(topic)] == server.events(stream)
    server.ask("DELETE", stream)


def test_a_broker_that_is_gone_slows_nothing_and_gets_all_when_it_is_back(tmp_path):
    broker = Broker(tmp_path)
    server = MqttServer(tmp_path / "server", "--mqtt-url", broker.url(None), "--mqtt-topic-prefix", "home/valora", "--mqtt-discovery-prefix", "",
                        env={"VALORA_MQTT_PASSWORD": PASSWORD, "PATH": "/usr/bin:/bin"})
    server.until_connected()
    stream = server.begin("push", [DIGITS], name="yard")
    server.push(stream, "digits-1.png")
    server.settle()
    assert not [topic for topic in retained(broker) if topic.startswith("homeassistant")]
    broker.kill()
    server.wait_until(lambda: not server.mqtt()["connected"], "the loss is seen")
    assert server.mqtt()["reason"] and server.metric("valora:mqtt_connected") == 0
    began = time.monotonic()
    for name in ("digits-2.png", "digits-2.png", "digits-1.png"):
        server.push(stream, name)
    assert time.monotonic() - began < 20
    assert server.mqtt()["waiting"] > 0
    broker.start()  # without what it kept
    subscriber = Subscriber(broker)
    server.until_connected(2)
    server.settle()
    kept = retained(broker)
    assert kept["home/valora/status"] == b"online" and kept["home/valora/streams/yard/skills/digits/active"] == b"ON"
    assert json.loads(kept["home/valora/streams/yard/skills/digits/answer"])["frame"] == 4
    missed = [e for e in server.events(stream) if e["type"] != "answers" and e.get("frame", 0) > 1]
    told = [json.loads(e) for e in subscriber.of("home/valora/streams/yard/events")]
    assert [e["type"] for e in missed] == ["start", "end", "start"] and told[-3:] == missed
    server.process.kill()  # the will of a server that dies
    server.process.wait()
    server.wait_until(lambda: subscriber.last("home/valora/status") == b"offline", "the last will")
    subscriber.stop()
    server = MqttServer(tmp_path / "server", "--mqtt-url", broker.url(), "--mqtt-topic-prefix", "home/valora")
    server.until_connected()
    server.settle()
    assert len(device_topics(retained(broker), stream)) == 3  # of a stream that survived the restart
    assert server.stop() == 0
    broker.kill()


def test_a_broker_that_notices_a_loss_late_does_not_say_offline(tmp_path):
    broker = Broker(tmp_path)
    router, subscriber = Router(broker), Subscriber(broker)
    server = MqttServer(tmp_path / "server", "--mqtt-url", f"mqtt://{USER}:{PASSWORD}@127.0.0.1:{router.port}")
    server.until_connected()
    server.settle()
    old = router.lose()
    server.until_connected(2)
    server.wait_until(lambda: subscriber.of("valora/status")[-1:] == [b"online"] and server.mqtt()["waiting"] == 0, "online again")
    old.close()
    time.sleep(1)
    assert subscriber.last("valora/status") == b"online" == retained(broker)["valora/status"]
    assert server.stop() == 0
    subscriber.stop()
    router.close()
    broker.kill()


def test_a_wrong_password_is_said_and_tried_again(tmp_path):
    broker = Broker(tmp_path)
    (tmp_path / "password").write_text("wrong-and-secret\n")
    server = MqttServer(tmp_path / "server", "--mqtt-url", broker.url(), "--mqtt-password-file", tmp_path / "password")
    server.wait_until(lambda: "authori" in server.mqtt()["reason"], "the refusal")
    stream = server.begin("push", ["digits"])
    assert "content" in server.push(stream, "digits-1.png")["answers"]["digits"]
    assert server.stop() == 0
    assert "wrong-and-secret" not in server.log.read_text() and "authori" in server.log.read_text()
    broker.kill()


def test_tls_is_spoken_to_a_broker_whose_authority_is_known(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    key.chmod(0o644)
    broker = Broker(tmp_path, tls=(certificate, key))
    url = broker.url(scheme="mqtts", host="localhost")
    server = MqttServer(tmp_path / "one", "--mqtt-url", url, "--mqtt-ca-file", certificate)
    server.until_connected()
    stream = server.begin("push", ["digits"])
    server.push(stream, "digits-1.png")
    server.settle()
    assert server.mqtt()["sent"] > 3
    assert server.stop() == 0
    server = MqttServer(tmp_path / "two", "--mqtt-url", url)  # no authority of the system signed it
    server.wait_until(lambda: server.mqtt()["reason"] != "connecting", "the refusal")
    assert not server.mqtt()["connected"]
    assert server.stop() == 0
    broker.kill()


def test_a_host_that_never_answers_delays_no_end(tmp_path):
    server = MqttServer(tmp_path / "server", "--mqtt-url", "mqtt://192.0.2.1")  # an address of documentation (RFC 5737)
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 5


def test_streams_ask_for_a_broker_that_is_there(tmp_path):
    server = StreamServer(tmp_path / "kept")
    description = {"source": "push", "skills": ["digits"], **ASKED}
    status, answer = server.ask("POST", "/v1/streams", description | {"mqtt": True})
    assert status == 400 and answer["error"]["param"] == "mqtt" and "--mqtt-url" in answer["error"]["message"]
    assert server.ask("POST", "/v1/streams", description | {"mqtt": False})[0] == 200
    assert "mqtt" not in server.ask("GET", "/v1/streams")[1]
    assert server.stop() == 0
