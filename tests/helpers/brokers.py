"""Debian's Mosquitto as an MQTT broker, and its clients."""

import pathlib
import shutil
import socket
import subprocess
import threading
import time

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
USER, PASSWORD = "valora", "s3cret-of-the-broker"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Broker:
    """A broker on a free port of 127.0.0.1, which takes one user. It keeps nothing when it ends."""

    def __init__(self, folder, tls=None):
        """tls: (certificate, key), PEM files."""
        self.folder, self.port = pathlib.Path(folder), free_port()
        passwords, settings = self.folder / "passwords", self.folder / "mosquitto.conf"
        subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, USER, PASSWORD], check=True, capture_output=True)
        passwords.chmod(0o644)
        lines = [f"listener {self.port} 127.0.0.1", "allow_anonymous false", f"password_file {passwords}", "persistence false", "user root"]
        if tls:
            lines += [f"certfile {tls[0]}", f"keyfile {tls[1]}"]
        settings.write_text("\n".join(lines) + "\n")
        self.start()

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", self.folder / "mosquitto.conf"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.02)
        raise AssertionError("mosquitto did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def client(self, program, *options):
        """The command line of one of Mosquitto's clients."""
        return [program, "-h", "127.0.0.1", "-p", str(self.port), "-u", USER, "-P", PASSWORD, *options]

    def url(self, password=PASSWORD, scheme="mqtt", host="127.0.0.1"):
        return f"{scheme}://{USER}{':' + password if password else ''}@{host}:{self.port}"


class Router:
    """Passes connections on to a broker, and may lose them for the client alone."""

    def __init__(self, broker):
        self.broker, self.sides = broker, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self.broker.port))
            self.sides.append((client, broker))
            for source, target in ((client, broker), (broker, client)):
                threading.Thread(target=self.copy, args=(source, target), daemon=True).start()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(4096):
                target.sendall(data)
        except OSError:
            pass

    def lose(self):
        """The client sees that its connection is lost; the broker does not. Returns the broker's side."""
        client, broker = self.sides[-1]
        client.shutdown(socket.SHUT_RDWR)
        return broker

    def close(self):
        self.listener.close()
        for side in (side for sides in self.sides for side in sides):
            side.close()


class Subscriber:
    """Keeps all messages of a broker as (topic, payload, whether it was retained), in their order, from its return on."""

    def __init__(self, broker, *options):
        self.messages = []
        self.process = subprocess.Popen(broker.client("mosquitto_sub", "-t", "#", "-q", "1", "-F", "%r %t %x", *options),
                                        stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        while not options and not self.of("subscribed"):
            subprocess.run(broker.client("mosquitto_pub", "-t", "subscribed", "-n"), check=True)
            time.sleep(0.05)

    def read(self):
        for line in self.process.stdout:
            retained, topic, payload = line.rstrip("\n").split(" ")
            self.messages.append((topic, bytes.fromhex(payload), retained == "1"))

    def of(self, topic):
        return [payload for name, payload, _ in list(self.messages) if name == topic]

    def last(self, topic):
        return (self.of(topic) or [None])[-1]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


def retained(broker):
    """The topics that the broker keeps, with their payloads."""
    subscriber = Subscriber(broker, "--retained-only", "-W", "1")
    subscriber.process.wait()
    subscriber.reader.join()
    return {topic: payload for topic, payload, _ in subscriber.messages}
