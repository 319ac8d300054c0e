"""The caches of prepared media and of their embeddings: sizes, metrics, start."""

import subprocess

import pytest

from programs import find_program
from serving import Server, image_part, picture

MEDIA, VISUAL = 200_000, 20_000


@pytest.fixture(scope="module")
def server(folders):
    server = Server({"model": folders["model"]}, "--media-cache", str(MEDIA), "--visual-cache", str(VISUAL))
    yield server
    assert server.stop() == 0


def ask(server, seed):
    return server.chat("tiny", [image_part(picture(seed))], max_tokens=1)


def test_the_welcome_names_the_caches(server):
    assert any("caches of media" in line and "--media-cache" in line for line in server.welcome)


def test_metrics_tell_the_caches_bytes_within_their_sizes(server):
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


def test_caches_larger_than_memory_are_refused_at_start(folders):
    for option in ("media-cache", "visual-cache"):
        done = subprocess.run([find_program("valora"), "serve", "--model", folders["model"], "--port", "0", f"--{option}", "9000G"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and f"--{option}" in done.stderr and "are free" in done.stderr
