"""The server over TLS, with the openai client and Python's own TLS."""

import contextlib
import http.client
import json
import re
import signal
import ssl
import subprocess

import httpx
import openai
import pytest

from programs import find_program


def make_certificate(path, name):
    """A key and a self-signed certificate for 127.0.0.1, both in one file."""
    key, certificate = path / f"{name}.key", path / f"{name}.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return key, certificate


@contextlib.contextmanager
def served(folders, *options):
    process = subprocess.Popen([find_program("valora"), "--log-level", "warning", "serve", "--model", folders["model"], "--port", "0",
                                "--served-model-name", "tiny", "--threads", "1", "--max-model-len", "256", *options],
                               stdout=subprocess.PIPE, text=True)
    try:
        yield next(match[1] for line in process.stdout if (match := re.search(r"serving +(https://\S+)/v1", line)))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


def test_openai_client_works_over_tls(folders, tmp_path):
    key, certificate = make_certificate(tmp_path, "server")
    with served(folders, "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key), "--enable-ssl-refresh") as url:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="none",
                           http_client=httpx.Client(verify=ssl.create_default_context(cafile=certificate))) as client:
            whole = client.completions.create(model="tiny", prompt="Hi", max_tokens=8, temperature=0)
            chunks = client.completions.create(model="tiny", prompt="Hi", max_tokens=8, temperature=0, stream=True)
            assert "".join(chunk.choices[0].text for chunk in chunks) == whole.choices[0].text
        with pytest.raises(openai.APIConnectionError), openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as stranger:
            stranger.models.list()


def test_client_certificates_are_verified(folders, tmp_path):
    key, certificate = make_certificate(tmp_path, "server")
    own_key, own_certificate = make_certificate(tmp_path, "client")
    with served(folders, "--ssl-certfile", str(certificate), "--ssl-keyfile", str(key), "--ssl-ca-certs", str(own_certificate),
                "--ssl-cert-reqs", "2") as url:
        context = ssl.create_default_context(cafile=certificate)
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            ask(url, context)
        context.load_cert_chain(own_certificate, own_key)
        assert ask(url, context)["data"][0]["id"] == "tiny"


def ask(url, context):
    connection = http.client.HTTPSConnection(url.removeprefix("https://"), timeout=60, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/models")
        return json.loads(connection.getresponse().read())


def test_unusable_files_are_refused_before_loading_the_model(tmp_path):
    key, certificate = make_certificate(tmp_path, "server")
    other, _ = make_certificate(tmp_path, "other")
    encrypted = tmp_path / "encrypted.key"
    subprocess.run(["openssl", "rsa", "-aes128", "-passout", "pass:secret", "-in", str(key), "-out", str(encrypted)], check=True,
                   capture_output=True)
    for options, words in ((("--ssl-certfile", "nowhere.pem"), "--ssl-certfile nowhere.pem: No such file"),
                           (("--ssl-certfile", str(certificate), "--ssl-keyfile", str(other)), "key values mismatch"),
                           (("--ssl-certfile", str(certificate), "--ssl-keyfile", str(encrypted)), "--ssl-keyfile"),
                           (("--ssl-keyfile", str(key)), "need --ssl-certfile"),
                           (("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key), "--ssl-cert-reqs", "2"), "--ssl-ca-certs")):
        done = subprocess.run([find_program("valora"), "serve", "nowhere", *options], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 1 and words in done.stderr, done.stderr
