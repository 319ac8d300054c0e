"""What cannot be loaded is said in one sentence, without the token; hostile answers reach nothing outside the cache."""

import pytest

REFUSED = {
    "own/none": "own/none is no folder here, and HOST has no model or adapter of this name; if it is private, set HF_TOKEN",
    "own/gated": "own/gated is gated: accept its terms at http://HOST/own/gated and set HF_TOKEN to a token of that account",
    "own/demo@v2": "own/demo has no revision v2",
}
REFUSED_WITH_TOKEN = {
    "own/private": "HOST has no model or adapter of this name that the token of HF_TOKEN may read",
    "own/gated": "own/gated is gated, and the account of the token of HF_TOKEN may not load it",
}


def error_of(done):
    assert done.returncode == 1 and not done.out
    lines = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.err
    return lines[0].removeprefix("error: ")


def test_refusals_are_one_sentence(hub, home):
    host = hub.url.removeprefix("http://")
    for name, words in REFUSED.items():
        assert error_of(home.run("inspect", name)) == words.replace("HOST", host)
    for name, words in REFUSED_WITH_TOKEN.items():
        done = home.run("inspect", name, more={"HF_TOKEN": "hf_secret"})
        assert words.replace("HOST", host) in error_of(done) and "secret" not in done.err
    bad = home.run("inspect", "own/demo", "--hf-token", "hf_bad")
    assert error_of(bad) == f"{host} refuses the token of --hf-token: renew or remove it"
    assert not list(home.cache.glob("models--*/snapshots"))


def test_busy_hub_is_waited_for(hub, home):
    hub.reset(busy=1)
    assert home.run("inspect", "own/cats").returncode == 0
    assert [request["path"] for request in hub.requests[:2]] == [hub.requests[0]["path"]] * 2


def test_nothing_is_asked_offline(hub, home):
    for options, more, why in (((), {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE"), (("--no-download",), {}, "--no-download")):
        done = home.run("inspect", "own/demo", *options, more=more)
        assert error_of(done) == f"own/demo is no folder here and not in the cache {home.cache}, and {why} forbids loading it"
    away = home.run("inspect", "own/demo", more={"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert f"not in the cache {home.cache}: http://127.0.0.1:9 cannot be reached: " in error_of(away)
    assert hub.requests == []


def test_folder_wins_over_name(hub, home):
    (home.path / "own/demo").mkdir(parents=True)
    assert "neither a model" in error_of(home.run("inspect", "own/demo", cwd=home.path))
    assert hub.requests == []


@pytest.mark.parametrize("listing", [
    {"sha": "../" * 13 + "x", "siblings": []},
    {"sha": "c" * 40, "siblings": [{"rfilename": ".."}]},
    {"sha": "c" * 40, "siblings": [{"rfilename": "config.json", "size": 1, "blobId": "../../../x"}]},
    {"sha": "c" * 40, "siblings": [{"rfilename": "..\\config.json", "size": 1, "blobId": "a" * 40}]},
    ["config.json"],
], ids=["commit", "name", "digest", "backslash", "list"])
def test_hostile_list_makes_no_file(hub, home, listing):
    hub.reset(listing=listing)
    assert "is no list of files" in error_of(home.run("inspect", "own/demo"))
    assert len(hub.requests) == 1 and not home.cache.exists()


def test_redirects_end(hub, home):
    hub.reset(loop=True)
    assert "redirects" in error_of(home.run("inspect", "own/demo"))
    assert len(hub.requests) < 60
