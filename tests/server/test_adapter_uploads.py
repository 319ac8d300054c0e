"""Uploaded adapters: they must answer like the folders they come from, and uploads that are cut off or too large must leave
nothing behind."""

import http.client
import shutil
import socket
import time

import pytest

from serving import Server

LIMIT = 400_000
FILES = ("adapter_config.json", "adapter_model.safetensors")


@pytest.fixture(scope="module")
def uploads(tmp_path_factory):
    return tmp_path_factory.mktemp("uploads") / "kept"


@pytest.fixture(scope="module")
def server(folders, uploads):
    made = Server({name: folders[name] for name in ("model", "two")}, "--allow-runtime-lora-updating",
                  "--adapter-upload-dir", uploads, "--adapter-upload-limit", str(LIMIT))
    yield made
    assert made.stop() == 0


def form(**fields):
    parts = [f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n" for name, value in fields.items()]
    return b"".join(parts) + b"--edge--\r\n"


def adapter_form(folder, name, **more):
    return form(**{file: (folder / file).read_bytes() for file in FILES}, lora_name=name.encode(), **more)


def upload(server, body):
    return server.request("POST", "/v1/upload_lora_adapter", body, {"Content-Type": "multipart/form-data; boundary=edge"})


def text(server, model):
    return server.chat(model, "Hi")["choices"][0]["message"]["content"]


def test_uploaded_adapter_equals_its_folder(server, folders, uploads):
    name = "../<b>x"
    status, said = upload(server, adapter_form(folders["two"], name))
    assert (status, said) == (200, f"Success: LoRA adapter '{name}' added successfully.")
    (kept,) = uploads.iterdir()
    assert sorted(path.name for path in kept.iterdir()) == sorted(FILES)
    assert text(server, name) == text(server, "two") != text(server, "tiny")
    assert upload(server, adapter_form(folders["two"], name))[0] == 400
    assert upload(server, adapter_form(folders["three"], name, load_inplace=b"true"))[0] == 200
    assert text(server, name) != text(server, "two")


def there(uploads):
    return sorted(path.name for path in uploads.iterdir())


def test_failed_load_leaves_no_files(server, folders, uploads, tmp_path):
    before = there(uploads)
    broken = tmp_path / "broken"
    shutil.copytree(folders["two"], broken)
    (broken / FILES[1]).write_bytes(b"\0" * 64)
    status, said = upload(server, adapter_form(broken, "broken"))
    assert status in (400, 422) and str(uploads) not in said
    status, said = upload(server, adapter_form(folders["two"], "large", **{"valora.json": b" " * LIMIT}))
    assert status == 413 and str(LIMIT) in said
    assert there(uploads) == before


def test_aborted_upload_leaves_no_files(server, folders, uploads):
    before = there(uploads)
    body = adapter_form(folders["two"], "cut")
    head = f"POST /v1/upload_lora_adapter HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=edge\r\nContent-Length: {len(body)}\r\n\r\n"
    for part in (0, 1000, len(body) - 1):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head.encode() + body[:part])
    time.sleep(0.2)
    assert there(uploads) == before
    assert '"cut"' not in server.request("GET", "/v1/lora_adapters")[1]
    assert upload(server, body)[0] == 200


def test_other_endpoints_keep_their_body_limit(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.putrequest("POST", "/v1/completions")
    connection.putheader("Content-Length", str(65 << 20))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
