"""`valora serve --manifest`: tasks as model names, several for one adapter, each answered by its head or by the
language model."""

import json

import pytest
from test_command_line import run

import checkpoints
from serving import MODEL, Server, image_part, picture, text_part

COLOURS, LETTERS = ["red", "green", "blue"], ["a", "b", "c", "d", "e"]
QUESTION = [image_part(picture(3)), text_part("What is this?")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """An adapter with two heads, and adapters with fewer."""
    root = tmp_path_factory.mktemp("manifest")
    base = checkpoints.make_model(MODEL)
    folders = {"model": checkpoints.save_model(base, root / "model")}
    for seed, name in enumerate(["pair", "plain", "single"]):
        folders[name] = checkpoints.save_adapter(base, root / name, 70 + seed, rank=4)
    hidden = base.config.get_text_config().hidden_size
    checkpoints.add_head(folders["pair"], hidden, COLOURS, 1, bias=True, name="colours")
    checkpoints.add_head(folders["pair"], hidden, LETTERS, 2, bias=False, name="letters")
    checkpoints.add_head(folders["single"], hidden, COLOURS, 3, bias=True)
    return folders


def write(folder, tasks, name="manifest.json"):
    path = folder / name
    path.write_text(json.dumps({"tasks": tasks}))
    return str(path)


@pytest.fixture(scope="module")
def server(folders):
    manifest = write(folders["model"].parent, {
        "colour": {"adapter": "pair", "head": "colours", "prompt": "Which colour?", "metric": "top1", "floor": 0.5, "accuracy": 0.75},
        "letter": {"adapter": str(folders["pair"]), "head": "letters"},
        "tell": {"adapter": "./pair/"},
        "talk": {"adapter": "plain"},
        "single": {"adapter": "single"}})
    server = Server({"model": folders["model"], "other": folders["plain"]}, "--manifest", manifest, "--allow-runtime-lora-updating")
    yield server
    assert server.stop() == 0


def answer(server, model, **extra):
    return server.chat(model, QUESTION, **extra)["choices"][0]["message"]["content"]


def test_every_task_is_listed(server, folders):
    cards = {card["id"]: card for card in json.loads(server.request("GET", "/v1/models")[1])["data"]}
    roots = {name: card["root"] for name, card in cards.items() if name != "tiny"}
    assert roots == {"other": str(folders["plain"]), "talk": str(folders["plain"]), "single": str(folders["single"])} | {
        name: str(folders["pair"]) for name in ("pair", "colour", "letter", "tell")}
    adapters = {card["name"]: card for card in json.loads(server.request("GET", "/v1/lora_adapters")[1])["data"]}
    assert {name: card["head"] for name, card in adapters.items()} == {
        "other": None, "talk": "", "single": "", "pair": None, "colour": "colours", "letter": "letters", "tell": ""}
    assert adapters["colour"]["question"] == "Which colour?"


def test_task_answers_with_its_head(server):
    assert answer(server, "colour") == answer(server, "pair", head="colours") and answer(server, "colour") in COLOURS
    assert answer(server, "letter") == answer(server, "pair", head="letters") and answer(server, "letter") in LETTERS
    both = [server.post("/classify", {"model": model, "input": "hello"}) for model in ("colour", "letter")]
    assert [(b["data"][0]["head"], b["data"][0]["num_classes"]) for b in both] == [("colours", 3), ("letters", 5)]
    assert server.request("POST", "/classify", {"model": "pair", "input": "hello"})[0] == 400  # ambiguous: two heads


def test_task_without_a_head_generates_text(server):
    told = answer(server, "tell")
    assert told == answer(server, "pair", head="") and told not in COLOURS + LETTERS
    assert answer(server, "single") == answer(server, "single", head="")  # although the adapter has a head
    assert answer(server, "single", head="score") in COLOURS
    assert answer(server, "talk") == answer(server, "other")
    assert answer(server, "talk") != told
    status, text = server.request("POST", "/classify", {"model": "tell", "input": "hello"})
    assert status == 400 and "no classification head" in text


def test_request_overrides_the_manifest(server):
    assert answer(server, "colour", head="letters") == answer(server, "letter")
    assert answer(server, "colour", head="") == answer(server, "tell")


def test_task_names_survive_unloading_the_folders_name(server):
    before = [answer(server, model) for model in ("colour", "tell")]
    status, text = server.request("POST", "/v1/unload_lora_adapter", {"lora_name": "pair"})
    assert status == 200, text
    assert server.request("POST", "/v1/chat/completions", {"model": "pair", "messages": [{"role": "user", "content": "x"}]})[0] == 404
    assert [answer(server, model) for model in ("colour", "tell")] == before


def refused(folders, tasks, *options, name="bad.json"):
    manifest = write(folders["model"].parent, tasks, name)
    done = run("--log-level", "warning", "serve", "--model", folders["model"], "--served-model-name", "tiny", "--port", "0",
               "--dtype", "float32", "--threads", "1", "--manifest", manifest, *options)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and not done.stdout, done
    return done.stderr


def test_duplicate_names_are_refused(folders):
    pair = {"adapter": "pair", "head": "colours"}
    assert 'the name "tiny" is given twice: to the base model and to the task "tiny"' in refused(folders, {"tiny": pair})
    text = refused(folders, {"cats": pair}, "--lora-modules", f"cats={folders['plain']}")
    assert 'the name "cats" is given twice: to an adapter of --lora-modules and to the task "cats"' in text
    text = refused(folders, {"a": pair, "b": pair, "plain": {"adapter": "plain"}, "pair": {"adapter": "single"}})
    assert 'the name "pair" is given twice' in text and "the folder" in text and 'the task "pair"' in text


def test_manifest_errors_are_named(folders):
    assert 'task "a": the adapter' in refused(folders, {"a": {"adapter": "nowhere"}})
    assert 'task "a": unknown key "hed"' in refused(folders, {"a": {"adapter": "pair", "hed": "colours"}})
    text = refused(folders, {"a": {"adapter": "pair", "head": "nose"}, "b": {"adapter": "pair"}})
    assert 'adapter a: the adapter has no head "nose"; its heads: colours, letters' in text
    missing = run("serve", "--model", folders["model"], "--manifest", "nowhere.json")
    assert missing.returncode == 1 and "nowhere.json does not exist" in missing.stderr


def test_folder_may_share_its_name_with_a_task(folders):
    manifest = write(folders["model"].parent, {"pair": {"adapter": "pair", "head": "letters"}, "tell": {"adapter": "pair"}}, "own.json")
    server = Server({"model": folders["model"], "other": folders["plain"]}, "--manifest", manifest)
    try:
        assert answer(server, "pair") in LETTERS
        assert answer(server, "tell") not in LETTERS
    finally:
        assert server.stop() == 0
