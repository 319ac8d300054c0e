"""Downloads that are cut, killed, met by another process, or find no room: nothing is loaded twice, and nothing wrong is kept."""

import hashlib
import resource
import signal
import time

import pytest
from fake_hub import BIG_BYTES

BIG = "own/big"


@pytest.fixture
def weights(hub):
    return hub.repositories[BIG].files["model.safetensors"]


def blob(home, weights):
    return home.repository(BIG) / "blobs" / hashlib.sha256(weights).hexdigest()


def incomplete(home, weights):
    path = blob(home, weights)
    return path.with_name(path.name + ".incomplete")


def load(home, **options):
    """The file is no model, so `inspect` ends with 1 once it is there."""
    done = home.run("inspect", BIG, **options)
    assert done.returncode == 1
    return done


def assert_loaded(home, weights):
    assert blob(home, weights).read_bytes() == weights
    assert not list((home.repository(BIG) / "blobs").glob("*.incomplete"))
    (snapshot,) = (home.repository(BIG) / "snapshots").iterdir()
    assert (snapshot / "model.safetensors").resolve() == blob(home, weights)


def begun_at(hub):
    return min(int(request["range"].removeprefix("bytes=").split("-")[0]) for request in hub.from_cdn())


def test_large_file_comes_in_ranges(hub, home, weights):
    load(home)
    assert_loaded(home, weights)
    assert len({request["range"] for request in hub.from_cdn()}) == 3 and hub.sent < BIG_BYTES + (1 << 20)


def test_connections_that_are_cut_go_on(hub, home, weights):
    hub.reset(cuts=7)
    load(home)
    assert_loaded(home, weights)
    assert len(hub.from_cdn()) == 3 + 7 and hub.sent < BIG_BYTES + (1 << 20)


def test_link_that_has_expired_is_asked_for_again(hub, home, weights):
    hub.reset(stale=4)
    load(home)
    assert_loaded(home, weights)


def test_server_without_ranges(hub, home, weights):
    hub.reset(no_ranges=True)
    load(home)
    assert_loaded(home, weights)


def test_killed_download_goes_on(hub, home, weights):
    hub.reset(rate=4 << 20)
    process = home.start("inspect", BIG)
    begin = incomplete(home, weights)
    deadline = time.monotonic() + 20
    while not (begin.exists() and begin.stat().st_size > 2 << 20):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert not (home.repository(BIG) / "snapshots").exists() and not blob(home, weights).exists()
    kept = begin.read_bytes()
    assert weights.startswith(kept)  # so that huggingface_hub can go on from it, too

    hub.reset()
    done = load(home)
    assert f"{len(kept) / (1 << 20):.1f} MiB of them here" in done.err
    assert_loaded(home, weights)
    assert begun_at(hub) == len(kept)


def test_beginning_by_huggingface_hub_is_used_and_a_wrong_one_is_not(hub, home, weights):
    begin = incomplete(home, weights)
    begin.parent.mkdir(parents=True)
    begin.write_bytes(weights[:5_000_000])
    load(home)
    assert_loaded(home, weights)
    assert begun_at(hub) == 5_000_000

    blob(home, weights).unlink()
    begin.write_bytes(bytes(5_000_000))
    hub.reset()
    load(home)
    assert_loaded(home, weights)
    assert begun_at(hub) == 0


def test_two_processes_load_once(hub, home, weights):
    hub.reset(rate=16 << 20)
    both = [home.start("inspect", BIG) for _ in range(2)]
    for process in both:
        process.communicate(timeout=60)
        assert process.returncode == 1
    assert_loaded(home, weights)
    assert len(hub.from_cdn()) == 3
    large = [request for request in hub.requests if request["path"].endswith("config.json")]
    assert len(large) == 1


def test_wrong_content_is_not_kept(hub, home, weights):
    hub.reset(corrupt=True)
    done = load(home)
    assert "model.safetensors of own/big does not have the hash" in done.err
    assert not blob(home, weights).exists() and not incomplete(home, weights).exists()
    assert not (home.repository(BIG) / "snapshots").exists()
    hub.reset()
    load(home)
    assert_loaded(home, weights)


def test_full_disk_loses_nothing(hub, home, weights):
    def little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, 6 << 20))

    done = load(home, preexec_fn=little_room, restore_signals=False)
    assert "has no room" in done.err and "the same command goes on from it" in done.err
    assert incomplete(home, weights).stat().st_size == 6 << 20
    hub.reset()
    load(home)
    assert_loaded(home, weights)
    assert begun_at(hub) == 6 << 20


def test_disk_that_is_too_small_is_said_before(hub, home):
    hub.reset(listing={"sha": "b" * 40, "siblings": [
        {"rfilename": "config.json", "size": 2, "blobId": "a" * 40},
        {"rfilename": "model.safetensors", "size": 1 << 60, "lfs": {"sha256": "a" * 64, "size": 1 << 60}}]})
    done = load(home)
    assert "own/big needs 1048576.0 TiB more, but" in done.err and "free" in done.err
    assert len(hub.requests) == 1 and not home.repository(BIG).exists()
