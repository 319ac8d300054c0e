"""A loopback server that answers as the Hugging Face Hub does, and a second one that holds the large files, as its CDN."""

import hashlib
import http.server
import json
import re
import threading
import time
import urllib.parse

CHUNK = 64 << 10
BIG_BYTES = 20 << 20  # of the large file that tests load
ERRORS = {"GatedRepo": 403, "RepoNotFound": 401, "RevisionNotFound": 404, "EntryNotFound": 404}


def git_blob_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Repository:
    """Files by name. Those in `large` are on the CDN, named by their SHA-256."""

    def __init__(self, files, commit="c" * 40, error=None, revisions=("main",)):
        self.files, self.commit, self.error, self.revisions = files, commit, error, revisions
        self.large = {name for name in files if name.endswith((".safetensors", ".gguf", ".bin"))}

    def digest(self, name):
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if name in self.large else git_blob_sha1(data)

    def sibling(self, name, blobs):
        if not blobs:
            return {"rfilename": name}
        entry = {"rfilename": name, "size": len(self.files[name]), "blobId": git_blob_sha1(self.files[name])}
        if name in self.large:
            entry["lfs"] = {"sha256": self.digest(name), "size": len(self.files[name]), "pointerSize": 134}
        return entry


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.send_slowly(body)

    def send_slowly(self, body):
        faults = self.hub.faults
        cut = self.hub.next_cut() if len(body) > CHUNK else None
        for begin in range(0, len(body), CHUNK):
            if cut is not None and begin >= cut:
                self.close_connection = True
                self.wfile.flush()
                self.connection.shutdown(2)
                return
            piece = body[begin:begin + CHUNK]
            self.wfile.write(piece)
            with self.hub.lock:
                self.hub.sent += len(piece)
            if faults.get("rate"):
                time.sleep(len(piece) / faults["rate"])

    def serve_bytes(self, data, headers):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not asked or self.hub.faults.get("no_ranges"):
            return self.answer(200, data, headers)
        begin, end = int(asked[1]), min(int(asked[2]) + 1, len(data))
        if begin >= len(data):
            return self.answer(416)
        return self.answer(206, data[begin:end], headers | {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"})

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self):
        self.hub.note(self)
        self.route()

    do_HEAD = do_GET


class HubHandler(Handler):
    def refuse(self, code, status=None):
        return self.answer(status or ERRORS[code], b"{}", {"X-Error-Code": code, "X-Error-Message": code})

    def route(self):
        with self.hub.lock:
            busy = self.hub.faults.get("busy", 0)
            self.hub.faults["busy"] = busy - 1
        if busy > 0:
            return self.answer(429, b"", {"Retry-After": "1"})
        url = urllib.parse.urlparse(self.path)
        path = urllib.parse.unquote(url.path)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)", path):
            return self.list_files(found[1], found[2], "blobs=" in url.query and not self.hub.faults.get("no_blobs"))
        if found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
            return self.resolve(*found.groups())
        return self.answer(404)

    def list_files(self, name, revision, blobs):
        if "listing" in self.hub.faults:
            return self.answer(200, json.dumps(self.hub.faults["listing"]).encode())
        if self.hub.faults.get("loop"):
            return self.answer(307, b"", {"Location": self.path})
        if self.headers.get("Authorization", "").endswith("hf_bad"):
            return self.answer(401, b"{}", {"X-Error-Message": "Invalid credentials in Authorization header"})
        repository = self.hub.repositories.get(name)
        if repository is None or repository.error == "RepoNotFound":
            return self.refuse("RepoNotFound")
        if revision not in repository.revisions and revision != repository.commit:
            return self.refuse("RevisionNotFound")
        body = {"id": name, "modelId": name, "sha": repository.commit, "private": False, "tags": [], "downloads": 0,
                "siblings": [repository.sibling(file, blobs) for file in repository.files]}
        return self.answer(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def resolve(self, name, revision, file):
        repository = self.hub.repositories[name]
        if repository.error == "GatedRepo":
            return self.refuse("GatedRepo", 403 if "Authorization" in self.headers else 401)
        if file not in repository.files:
            return self.refuse("EntryNotFound")
        data, digest = repository.files[file], repository.digest(file)
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{digest}"', "Accept-Ranges": "bytes"}
        if file not in repository.large:
            return self.serve_bytes(data, headers)
        return self.answer(302, b"", headers | {
            "X-Linked-Etag": f'"{digest}"', "X-Linked-Size": str(len(data)), "X-Xet-Hash": "e" * 64, "ETag": '"other"',
            "Link": '<https://cas-server.invalid>; rel="xet-auth"', "Location": f"{self.hub.cdn_url}/{digest}?Signature=s3cret"})


class CdnHandler(Handler):
    def route(self):
        with self.hub.lock:
            stale = self.hub.faults.get("stale", 0)
            self.hub.faults["stale"] = stale - 1
        if stale > 0:
            return self.answer(403)
        digest = self.path[1:65]
        for repository in self.hub.repositories.values():
            for name in repository.large:
                if repository.digest(name) == digest:
                    data = repository.files[name]
                    if self.hub.faults.get("corrupt"):
                        data = data[:-1] + bytes([data[-1] ^ 1])
                    return self.serve_bytes(data, {"ETag": '"cdn"'})
        return self.answer(403)


class FakeHub:
    def __init__(self, repositories):
        self.repositories, self.faults, self.lock = repositories, {}, threading.Lock()
        self.reset()
        self.servers, self.threads = [], []
        for handler in (HubHandler, CdnHandler):
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (handler,), {"hub": self}))
            server.daemon_threads = True
            self.servers.append(server)
            self.threads.append(threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}))
            self.threads[-1].start()
        # The CDN has another host name, not only another port.
        self.url = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.cdn_url = f"http://localhost:{self.servers[1].server_port}"

    def reset(self, **faults):
        self.faults, self.requests, self.sent = faults, [], 0

    def note(self, handler):
        with self.lock:
            self.requests.append(dict(cdn=isinstance(handler, CdnHandler), method=handler.command, path=handler.path,
                                      token=handler.headers.get("Authorization"), range=handler.headers.get("Range")))

    def next_cut(self):
        """Bytes after which this reply is cut."""
        with self.lock:
            cuts = self.faults.get("cuts", 0)
            self.faults["cuts"] = cuts - 1
            return self.faults.get("cut_at", 1 << 20) if cuts > 0 else None

    def from_cdn(self):
        return [request for request in self.requests if request["cdn"]]

    def close(self):
        for server, thread in zip(self.servers, self.threads):
            server.shutdown()
            thread.join()
            server.server_close()
