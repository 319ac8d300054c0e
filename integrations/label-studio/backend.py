#!/usr/bin/env python3
"""A machine learning backend for Label Studio that asks valora. Standard library alone.

    python3 backend.py --valora http://127.0.0.1:8000/v1 --model coins

It answers Label Studio's requests /health, /setup, /predict and /versions; /train and /webhook are acknowledged,
and nothing is trained. Keys come from $VALORA_API_KEY and $LABEL_STUDIO_API_KEY.
"""

import argparse
import concurrent.futures
import contextlib
import http.server
import json
import os
import sys

from asking import AskError, LabelStudio, Valora
from labelling import ConfigError, read_config

BODY_LIMIT = 64 << 20  # bytes


class Backend:
    """Label Studio's requests as functions from bodies to answers."""

    def __init__(self, valora, label_studio, in_flight, version=None):
        self.valora, self.label_studio, self.version = valora, label_studio, version
        self.pool = concurrent.futures.ThreadPoolExecutor(in_flight)

    def health(self, _=None):
        self.valora.ready()
        return {"status": "UP", "model_class": "valora"}

    def _version(self, controls):
        return self.version or "+".join(dict.fromkeys(map(self.valora.model_of, controls)))

    def setup(self, body):
        """Checks the configuration against the models, so that a mistake shows when it is made."""
        controls = read_config(body.get("schema") or body.get("label_config") or "")
        for control in controls:
            self.valora.terms(control)
        return {"model_version": self._version(controls)}

    def _ask(self, controls, task):
        regions = []
        for control, terms in controls:
            address = task.get("data", {}).get(control.data_key)
            if not isinstance(address, str):
                raise AskError(f'task {task.get("id")} has no "{control.data_key}"')
            picture = self.label_studio.picture(address)
            ask = self.valora.rectangles if control.type == "RectangleLabels" else self.valora.choices
            regions += ask(control, terms, task, picture)
        return regions

    def predict(self, body):
        """A prediction for each task. One that fails has an error instead of a result, so that Label Studio keeps none;
        if all fail, the request does."""
        controls = read_config(body.get("label_config") or "")
        version, tasks = self._version(controls), body.get("tasks") or []
        known = [(control, self.valora.terms(control)) for control in controls]
        asked = [self.pool.submit(self._ask, known, task) for task in tasks]
        results, failures = [], []
        for task, future in zip(tasks, asked):
            try:
                regions = future.result()
            except AskError as error:
                print(f"task {task.get('id')}: {error}", file=sys.stderr, flush=True)
                failures.append(error)
                results.append({"error": str(error)})
                continue
            scores = [region["score"] for region in regions]
            results.append({"result": regions, "score": sum(scores) / len(scores) if scores else 0.0,
                            "model_version": version})
        if failures and len(failures) == len(tasks):
            raise failures[0]
        return {"results": results, "model_version": version}

    def versions(self, _):
        return {"versions": [self.version or self.valora.model or "valora"]}

    def acknowledge(self, _):
        return {"status": "nothing is trained here"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    backend = None

    def log_message(self, *_):
        pass

    def _respond(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            self.close_connection = True
            raise ConfigError(f"a body needs a Content-Length of at most {BODY_LIMIT >> 20} MiB")
        try:
            body = json.loads(self.rfile.read(int(length)) or b"{}")
        except ValueError as error:
            raise ConfigError(f"the body is no JSON: {error}") from None
        if not isinstance(body, dict):
            raise ConfigError("the body must be an object")
        return body

    def _answer(self, routes, read):
        path = self.path.split("?")[0].rstrip("/") or "/"
        try:
            body = read()
            if path not in routes:
                return self._respond(404, {"error": f"there is no {self.command} {path}"})
            self._respond(routes[path][1], routes[path][0](body))
        except ConfigError as error:
            self._respond(400, {"error": str(error)})
        except AskError as error:
            print(error, file=sys.stderr, flush=True)
            self._respond(503 if path == "/health" else 502, {"error": str(error)})

    def do_GET(self):
        self._answer({"/health": (self.backend.health, 200), "/": (self.backend.health, 200)}, lambda: None)

    def do_POST(self):
        backend = self.backend
        self._answer({"/setup": (backend.setup, 200), "/predict": (backend.predict, 200),
                      "/versions": (backend.versions, 200), "/train": (backend.acknowledge, 201),
                      "/webhook": (backend.acknowledge, 201)}, self._body)


def main():
    parser = argparse.ArgumentParser(description="A machine learning backend for Label Studio that asks valora.")
    parser.add_argument("--valora", default="http://127.0.0.1:8000/v1", help="the server's address, with /v1")
    parser.add_argument("--model", help="the model of tags without valora_model; by default the base model")
    parser.add_argument("--prompt", help="the question; by default the task's, else one that names the labels")
    parser.add_argument("--max-tokens", type=int, default=1024, help="tokens of an answer (%(default)s)")
    parser.add_argument("--model-version", help="the name of predictions' version; by default the models' names")
    parser.add_argument("--label-studio-url", default=os.environ.get("LABEL_STUDIO_URL", ""),
                        help="Label Studio's address, for pictures that were uploaded to it ($LABEL_STUDIO_URL)")
    parser.add_argument("--in-flight", type=int, default=8, help="tasks that are asked at once (%(default)s)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9090)
    given = parser.parse_args()
    valora = Valora(given.valora, os.environ.get("VALORA_API_KEY", ""), given.model, given.prompt, given.max_tokens)
    studio = LabelStudio(given.label_studio_url, os.environ.get("LABEL_STUDIO_API_KEY", ""))
    Handler.backend = Backend(valora, studio, given.in_flight, given.model_version)
    server = http.server.ThreadingHTTPServer((given.host, given.port), Handler)
    server.daemon_threads = True
    print(f"serving http://{given.host}:{server.server_port}", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
