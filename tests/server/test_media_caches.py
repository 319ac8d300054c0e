"""The caches of prepared media and of their embeddings: sizes, metrics and memory; also the token counts
of media."""

import base64
import subprocess

import pytest

from programs import find_program
from serving import Server, chat_body, data_url, image_part, picture, text_part

MEDIA, VISUAL = 200_000, 20_000


@pytest.fixture(scope="module")
def server(folders):
    server = Server({"model": folders["model"]}, "--media-cache", str(MEDIA), "--visual-cache", str(VISUAL))
    yield server
    assert server.stop() == 0


def ask(server, seed):
    return server.chat("tiny", [image_part(picture(seed))], max_tokens=1)


def test_startup_log_names_the_caches(server):
    assert any("caches of media" in line and "--media-cache" in line for line in server.welcome)


def test_cache_metrics_stay_within_configured_sizes(server):
    value = lambda name: server.metric(f"valora:{name}")
    before = server.metric("vllm:mm_cache_hits_total"), value("visual_cache_hits_total")
    for seed in range(60):
        ask(server, seed)
    entries = value("media_cache_entries"), value("visual_cache_entries")
    assert 1 < entries[0] < 60 and 1 < entries[1] < 60
    assert MEDIA / 2 < value("media_cache_bytes") <= MEDIA
    assert VISUAL / 2 < value("visual_cache_bytes") <= VISUAL
    ask(server, 59)
    ask(server, 0)
    assert server.metric("vllm:mm_cache_hits_total") == before[0] + 1, "the newest was kept, the oldest was not"
    assert (value("media_cache_entries"), value("visual_cache_entries")) == entries


def test_caches_larger_than_memory_are_refused_at_startup(folders):
    for option in ("media-cache", "visual-cache"):
        done = subprocess.run([find_program("valora"), "serve", "--model", folders["model"], "--port", "0", f"--{option}", "9000G"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and f"--{option}" in done.stderr and "are free" in done.stderr


def test_tokenize_counts_media_like_chat(server):
    frames = ",".join(base64.b64encode(picture(seed)).decode() for seed in range(4))
    video = {"type": "video_url", "video_url": {"url": "data:video/jpeg;base64," + frames}}
    for content in ([image_part(picture(1)), text_part("what is this?")], [image_part(picture(2, 90, 60)), image_part(picture(3))],
                    [text_part("and this?"), video]):
        messages = [{"role": "user", "content": content}]
        tokens = server.post("/tokenize", {"model": "tiny", "messages": messages})
        usage = server.post("/v1/chat/completions", chat_body("tiny", content, max_tokens=1))["usage"]
        assert tokens["count"] == usage["prompt_tokens"] == len(tokens["tokens"])


def test_tokenize_refuses_media_like_chat(server):
    for url in (data_url(b"no picture"), "http://127.0.0.1:1/x.png", "file:///etc/passwd"):
        messages = [{"role": "user", "content": [image_part(url)]}]
        status, text = server.request("POST", "/tokenize", {"model": "tiny", "messages": messages})
        assert status == 400
        assert text == server.request("POST", "/v1/chat/completions", {"model": "tiny", "messages": messages})[1]
