"""/v1/files and /v1/batches with the openai client, on the demo's model: answers, faults, owners, and servers that were
killed."""

import json
import pathlib
import resource
import signal
import time

import openai
import pytest

from serving import ServedProcess, image_part, text_part

DEMO = pathlib.Path(__file__).resolve().parents[2] / "demo"
CHAT, COMPLETION, EMBEDDING, RESPONSE = "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"
ENDED = ("completed", "failed", "expired", "cancelled")


class BatchServer(ServedProcess):
    def __init__(self, folder, *options, **process_options):
        batches = ["--batches-dir", folder] if folder else []
        super().__init__("--model", DEMO / "model", "--manifest", DEMO / "manifest.json", "--served-model-name", "demo", "--dtype", "float32",
                         "--threads", "1", *batches, *map(str, options), **process_options)

    def client(self, key="none"):
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=30)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = BatchServer(tmp_path_factory.mktemp("batches") / "kept")
    yield made
    assert made.stop() == 0


@pytest.fixture(scope="module")
def client(server):
    return server.client()


def chat(text, **extra):
    return {"model": "demo", "messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 6} | extra


def coins(i):
    picture = (DEMO / "samples" / f"coins-{1 + i % 3}.png").read_bytes()
    return chat([image_part(picture), text_part("Find all coins and cards.")], model="coins", response_format={"type": "boxes"}, max_tokens=60)


def lines_of(bodies, url=CHAT):
    return "".join(json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body}) + "\n" for name, body in bodies.items())


def begin(client, lines, endpoint=CHAT, window="24h", **extra):
    file = client.files.create(file=("rows.jsonl", lines.encode()), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window=window, **extra)


def wait_for(client, batch, statuses=ENDED, seconds=60):
    deadline = time.monotonic() + seconds
    while (batch := client.batches.retrieve(batch.id)).status not in statuses:
        assert time.monotonic() < deadline, batch
        time.sleep(0.05)
    return batch


def rows_of(client, file_id):
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()] if file_id else []


def all_rows(client, batch):
    """The rows of both files by their custom_id, each of which must be there once."""
    rows = rows_of(client, batch.output_file_id) + rows_of(client, batch.error_file_id)
    by_name = {row["custom_id"]: row for row in rows}
    assert len(by_name) == len(rows)
    return by_name


def live(server, body, url=CHAT):
    status, text = server.request("POST", url, body)
    return status, json.loads(text)


def test_batch_has_the_answers_of_live_requests(server, client):
    bodies = {f"picture {i}": coins(i) for i in range(4)} | {f"text-{i}": chat(f"Say {i}", seed=i) for i in range(6)}
    bodies |= {"nobody": chat("x", model="nobody"), "hot": chat("x", temperature=9)}
    batch = begin(client, lines_of(bodies), metadata={"night": "1"})
    assert batch.status == "validating" and batch.object == "batch" and batch.metadata == {"night": "1"}
    batch = wait_for(client, batch)
    assert batch.status == "completed" and batch.errors is None
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (12, 10, 2)
    assert batch.created_at <= batch.in_progress_at <= batch.finalizing_at <= batch.completed_at < batch.expires_at
    assert {row["custom_id"] for row in rows_of(client, batch.error_file_id)} == {"nobody", "hot"}
    rows = all_rows(client, batch)
    assert rows.keys() == bodies.keys()
    for name, body in bodies.items():
        status, answer = live(server, body)
        response = rows[name]["response"]
        assert rows[name]["error"] is None and rows[name]["id"].startswith("batch_req_") and response["request_id"]
        assert response["status_code"] == status and response["body"].keys() == answer.keys()
        assert response["body"].get("choices") == answer.get("choices") and response["body"].get("error") == answer.get("error")
    output = client.files.retrieve(batch.output_file_id)
    assert output.purpose == "batch_output" and output.filename == f"{batch.id}_output.jsonl"
    assert output.bytes == len(client.files.content(output.id).read())


@pytest.mark.parametrize("url, body", [
    (COMPLETION, {"prompt": "The", "max_tokens": 3, "temperature": 0}), (EMBEDDING, {"input": "A text"}),
    (RESPONSE, {"input": "Hello", "max_output_tokens": 4, "temperature": 0})])
def test_other_endpoints_are_asked(server, client, url, body):
    batch = wait_for(client, begin(client, lines_of({"one": body}, url), url))
    answer, = rows_of(client, batch.output_file_id)
    _, other = live(server, body, url)
    ids = ("id", "created", "created_at", "completed_at")
    assert {k: v for k, v in answer["response"]["body"].items() if k not in (*ids, "output", "usage")} == {
        k: v for k, v in other.items() if k not in (*ids, "output", "usage")}
    if url == RESPONSE:
        assert answer["response"]["body"]["output"][0]["content"] == other["output"][0]["content"]


def test_faulty_lines_fail_with_their_numbers(client):
    good = lines_of({"a": chat("x")})
    batch = wait_for(client, begin(client, good + "{\n\n" + good + lines_of({"b": {}}, EMBEDDING) + lines_of({"c": chat("x", stream=True)})))
    assert batch.status == "failed" and batch.output_file_id is None and batch.error_file_id is None
    faults = [(fault.line, fault.code, fault.param) for fault in batch.errors.data]
    assert faults == [(2, "invalid_json_line", None), (4, "duplicate_custom_id", "custom_id"), (5, "invalid_url", "url"),
                      (6, "invalid_request", "body.stream")]
    empty = wait_for(client, begin(client, "\n"))
    assert [(fault.line, fault.code) for fault in empty.errors.data] == [(None, "empty_file")]


def test_cancelled_batch_keeps_what_is_done(server, client):
    bodies = {str(i): coins(i) for i in range(400)}
    batch = begin(client, lines_of(bodies))
    while client.batches.retrieve(batch.id).request_counts.completed < 5:
        time.sleep(0.01)
    assert live(server, chat("Hello"))[0] == 200  # a live request does not wait for the batch
    assert client.batches.retrieve(batch.id).status == "in_progress"
    assert client.batches.cancel(batch.id).status in ("cancelling", "cancelled")
    batch = wait_for(client, batch)
    assert batch.status == "cancelled" and batch.cancelling_at <= batch.cancelled_at
    rows = all_rows(client, batch)
    assert rows.keys() == bodies.keys()
    done = [row for row in rows.values() if row["response"]]
    assert 5 <= len(done) < 400 and len(done) == batch.request_counts.completed
    assert {row["error"]["code"] for row in rows.values() if row["response"] is None} == {"batch_cancelled"}
    with pytest.raises(openai.ConflictError, match="is cancelled and cannot be cancelled"):
        client.batches.cancel(batch.id)


def metric(server, name, **labels):
    """The value of a series with these labels."""
    _, text = server.request("GET", "/metrics")
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
               if line.startswith(name + "{") and all(f'{key}="{value}"' in line for key, value in labels.items()))


def test_metrics_count_rows_and_batches(server, client):
    def rows():
        return {name: metric(server, f"valora:batch_rows_{name}") for name in ("waiting", "in_flight", "completed_total", "failed_total")}

    before, cancelled = rows(), metric(server, "valora:batches", status="cancelled")
    bodies = {str(i): chat("Hi", max_tokens=400, ignore_eos=True) for i in range(300)} | {"wrong": chat("Hi", model="nobody")}
    batch = begin(client, lines_of(bodies))
    server.wait_until(lambda: rows()["in_flight"] > 0, "rows are in flight")
    now = rows()
    assert now["waiting"] > 0 and 0 < now["in_flight"] <= 301 and metric(server, "valora:batches", status="in_progress") == 1
    client.batches.cancel(batch.id)
    batch = wait_for(client, batch)
    after = rows()
    assert (after["waiting"], after["in_flight"]) == (0, 0)
    assert after["completed_total"] - before["completed_total"] == batch.request_counts.completed
    assert after["failed_total"] - before["failed_total"] == batch.request_counts.failed > 0
    assert metric(server, "valora:batches", status="cancelled") == cancelled + 1


def test_expired_batch_names_the_rows_that_were_not_asked(client):
    bodies = {str(i): chat("Hi", max_tokens=400, ignore_eos=True) for i in range(300)}
    batch = wait_for(client, begin(client, lines_of(bodies), window="1s"))
    assert batch.status == "expired" and batch.expired_at >= batch.expires_at
    rows = all_rows(client, batch)
    assert rows.keys() == bodies.keys()
    assert {row["error"]["code"] for row in rows.values() if row["response"] is None} == {"batch_expired"}


def test_files_are_listed_and_deleted(client):
    made = [client.files.create(file=(f"{i}.jsonl", b"x"), purpose="batch") for i in range(3)]
    newest = client.files.list(limit=2)
    assert [file.filename for file in newest.data] == ["2.jsonl", "1.jsonl"] and newest.has_more
    ids = [file.id for file in client.files.list(purpose="batch", order="asc")]
    assert ids[-3:] == [file.id for file in made]
    assert client.files.delete(made[0].id).deleted
    with pytest.raises(openai.NotFoundError, match=f"No such File object: {made[0].id}"):
        client.files.retrieve(made[0].id)
    with pytest.raises(openai.BadRequestError, match='"purpose" must be batch'):
        client.files.create(file=("a", b"x"), purpose="vision")
    with pytest.raises(openai.BadRequestError, match=r"expires_after"):
        client.files.create(file=("a", b"x"), purpose="batch", expires_after={"anchor": "created_at", "seconds": 3600})
    part = client.files.with_raw_response.content(made[1].id, extra_headers={"Range": "bytes=0-0"})
    assert part.status_code == 206 and part.content == b"x"


def test_batches_are_listed_by_pages(client):
    made = [begin(client, lines_of({"a": chat(str(i))})).id for i in range(3)]
    assert [batch.id for batch in client.batches.list(limit=2)][:3] == made[::-1]  # the client asks for page after page
    with pytest.raises(openai.NotFoundError, match="No batch found"):
        client.batches.retrieve("batch_none")


@pytest.mark.parametrize("fields, words", [
    ({"endpoint": "/v1/models"}, "batches may ask"), ({"completion_window": "soon"}, "completion_window"),
    ({"input_file_id": "file-none"}, "No such File object"), ({"metadata": {"a": "x" * 600}}, "metadata.a"),
    ({"output_expires_after": {"anchor": "created_at", "seconds": 3600}}, "output_expires_after")])
def test_wrong_fields_are_named(client, fields, words):
    file = client.files.create(file=("a", b"x"), purpose="batch")
    with pytest.raises(openai.APIStatusError, match=words) as refused:
        client.batches.create(**dict(input_file_id=file.id, endpoint=CHAT, completion_window="24h") | fields)
    assert refused.value.status_code in (400, 404)


def test_server_without_the_option_names_it():
    served = BatchServer(None)
    for ask in (lambda c: c.files.list(), lambda c: c.batches.list(), lambda c: c.files.create(file=("a", b"x"), purpose="batch"),
                lambda c: c.batches.create(input_file_id="x", endpoint=CHAT, completion_window="24h")):
        with pytest.raises(openai.PermissionDeniedError, match="--batches-dir"):
            ask(served.client())
    assert served.stop() == 0


def test_killed_server_goes_on_with_the_batch(server, tmp_path):
    """Killed five times in the middle; each row is answered once, as it is live."""
    bodies = {f"row {i}": coins(i) for i in range(150)} | {"bad": chat("x", model="nobody")}
    options = ["--batch-concurrency", 4]
    served = BatchServer(tmp_path / "kept", *options)
    batch = begin(served.client(), lines_of(bodies))
    counts = []
    for _ in range(5):
        start = counts[-1] if counts else 0
        while (now := served.client().batches.retrieve(batch.id)).request_counts.completed < start + 8 and now.status not in ENDED:
            time.sleep(0.002)
        counts.append(now.request_counts.completed)
        served.kill()
        served = BatchServer(tmp_path / "kept", *options)
    assert counts == sorted(set(counts)) and counts[-1] < 150
    batch = wait_for(served.client(), batch)
    assert batch.status == "completed" and batch.request_counts.completed == 150 and batch.request_counts.failed == 1
    rows = all_rows(served.client(), batch)
    assert rows.keys() == bodies.keys()
    answers = [live(server, coins(i))[1]["choices"] for i in range(3)]
    assert all(rows[f"row {i}"]["response"]["body"]["choices"] == answers[i % 3] for i in range(150))
    assert served.stop() == 0


def test_drained_server_leaves_the_rest_to_the_next(tmp_path):
    bodies = {str(i): coins(i) for i in range(200)}
    served = BatchServer(tmp_path / "kept", "--batch-concurrency", 4)
    batch = begin(served.client(), lines_of(bodies))
    while served.client().batches.retrieve(batch.id).request_counts.completed < 10:
        time.sleep(0.01)
    assert served.stop() == 0
    served = BatchServer(tmp_path / "kept")
    batch = wait_for(served.client(), batch)
    assert batch.status == "completed" and all_rows(served.client(), batch).keys() == bodies.keys()
    assert served.stop() == 0


def test_full_disk_loses_nothing(tmp_path):
    """A limit on the size of files stands for a full disk: the batch waits, live requests are answered."""
    def small_disk():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

    folder = tmp_path / "kept"
    # Rows are written as they end, so few at once leave some of them written when the disk is full.
    full = BatchServer(folder, "--batch-concurrency", 4, preexec_fn=small_disk, stderr=(tmp_path / "log").open("w"))
    bodies = {str(i): chat(f"Say {i}") for i in range(80)}
    batch = begin(full.client(), lines_of(bodies))
    full.wait_until(lambda: "waits until it can be written" in (tmp_path / "log").read_text(), "the disk is full")
    now = full.client().batches.retrieve(batch.id)
    assert now.status == "in_progress" and 0 < now.request_counts.completed < 80
    assert live(full, chat("Hello"))[0] == 200
    with pytest.raises(openai.APIStatusError, match="cannot keep the file: its disk is full") as refused:
        full.client().files.create(file=("a", b"x" * 30_000), purpose="batch")
    assert refused.value.status_code == 507
    full.kill()
    served = BatchServer(folder)
    batch = wait_for(served.client(), batch)
    assert batch.status == "completed" and all_rows(served.client(), batch).keys() == bodies.keys()
    assert served.stop() == 0


USERS = """users:
  - {name: ann, key: sk-ann-0001, models: ["*"], max_requests: 3}
  - {name: bob, key: sk-bob-0002, models: [coins]}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server with users, and its folder."""
    root = tmp_path_factory.mktemp("owners")
    (root / "users.yaml").write_text(USERS)
    made = BatchServer(root / "kept", "--users", root / "users.yaml", "--api-key", "sk-operator", "--batches-per-user", 1, "--batch-file-limit", "1M",
                       "--batch-storage", "1500k", "--batch-rows", 50)
    yield made
    assert made.stop() == 0


def test_files_and_batches_are_their_owners(shared):
    ann, bob, operator = (shared.client(key) for key in ("sk-ann-0001", "sk-bob-0002", "sk-operator"))
    bodies = {f"{i}": coins(i) for i in range(12)} | {"base": chat("x")}
    batch = begin(bob, lines_of(bodies))
    for ask in (ann.batches.retrieve, ann.batches.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(batch.id)
    for ask in (ann.files.retrieve, ann.files.content, ann.files.delete):
        with pytest.raises(openai.NotFoundError):
            ask(batch.input_file_id)
    with pytest.raises(openai.NotFoundError):
        ann.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
    assert not list(ann.batches.list()) and not list(ann.files.list())
    assert [b.id for b in operator.batches.list()] == [batch.id]
    batch = wait_for(bob, batch)
    assert batch.status == "completed"
    rows = all_rows(bob, batch)
    assert rows["base"]["response"]["status_code"] == 404  # bob may ask coins alone, also in a batch
    assert all(rows[f"{i}"]["response"]["status_code"] == 200 for i in range(12))
    for ask in (ann.files.retrieve, ann.files.content):
        with pytest.raises(openai.NotFoundError):
            ask(batch.output_file_id)


def test_quota_of_a_user_slows_its_batch_and_fails_no_row(shared):
    """Ann may have three requests under way, fewer than a batch asks at once."""
    ann = shared.client("sk-ann-0001")
    bodies = {str(i): coins(i) for i in range(30)}
    batch = wait_for(ann, begin(ann, lines_of(bodies)))
    assert batch.status == "completed" and batch.request_counts.completed == 30


def test_limits_are_named(shared):
    operator = shared.client("sk-operator")
    with pytest.raises(openai.APIStatusError, match="larger than") as refused:
        operator.files.create(file=("a", b"x" * (1 << 20) + b"x" * 70_000), purpose="batch")
    assert refused.value.status_code == 413
    kept = operator.files.create(file=("a", b"x" * 1_000_000), purpose="batch")
    with pytest.raises(openai.APIStatusError, match="--batch-storage; delete some") as refused:
        operator.files.create(file=("a", b"x" * 1_000_000), purpose="batch")
    assert refused.value.status_code == 507
    operator.files.delete(kept.id)
    long = wait_for(operator, begin(operator, lines_of({str(i): chat("x") for i in range(51)})))
    assert [(fault.code, fault.line) for fault in long.errors.data] == [("too_many_requests", None)]
    batch = begin(operator, lines_of({str(i): coins(i) for i in range(50)}))
    with pytest.raises(openai.RateLimitError, match="cancel one or wait"):
        operator.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
    with pytest.raises(openai.ConflictError, match="has not ended"):
        operator.files.delete(batch.input_file_id)
    operator.batches.cancel(batch.id)
    wait_for(operator, batch)


def test_second_server_on_the_folder_is_refused(server, tmp_path):
    import subprocess

    from programs import find_program
    folder = tmp_path / "kept"
    first = BatchServer(folder)
    second = subprocess.run([find_program("valora"), "serve", "--model", DEMO / "model", "--port", "0", "--batches-dir", folder],
                            capture_output=True, text=True, timeout=60)
    assert second.returncode == 1 and "another server has it" in second.stderr
    assert first.stop() == 0
