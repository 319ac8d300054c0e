"""Adapters at run time, and the model list."""

import json
import shutil
import threading

import openai
import pytest

from peers import ADAPTERS, DEMO, peer

LORA = "serve/lora/test_lora_adapters.py"
SERVING = "serve/lora/test_serving_models.py"
RESOLVERS = "openai/completion/test_lora_resolvers.py"
MODELS = "openai/models/test_models.py"
PROMPTS = ["Hello there", "Foo bar bazz buzz"]


def load(served, name, path, **more):
    return served.request("POST", "/v1/load_lora_adapter", dict(lora_name=name, lora_path=str(path)) | more)


def unload(served, name):
    return served.request("POST", "/v1/unload_lora_adapter", dict(lora_name=name))


@pytest.fixture
def loaded(served):
    """Loads adapters, and unloads them after the test."""
    names = []

    def add(name, path=ADAPTERS["adapter-3"], **more):
        names.append(name)
        return load(served, name, path, **more)

    yield add
    for name in set(names):
        unload(served, name)


def greedy(client, model):
    answer = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Find the car."}], temperature=0,
                                            max_tokens=12, extra_body={"ignore_eos": True, "head": ""})
    return answer.choices[0].message.content


def changed(folder, **config):
    shutil.copytree(ADAPTERS["adapter-3"], folder)
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    return folder


def unreadable(tmp_path):
    folder = tmp_path / "unreadable"
    folder.mkdir()
    (folder / "adapter_config.json").write_text("no JSON at all")
    return folder


@peer(LORA, "test_static_lora_lineage")
def test_adapters_of_the_command_line_name_their_base(client):
    base, *adapters = client.models.list().data
    assert (base.id, base.root, base.parent) == ("demo", str(DEMO / "model"), None)
    assert {card.id: card.root for card in adapters if card.id in ADAPTERS} == ADAPTERS
    assert adapters[0].id == "adapter-1"
    assert all(card.parent == "demo" for card in adapters)


@peer(LORA, "test_dynamic_lora_lineage")
def test_loaded_adapter_is_the_last_model_card(client, loaded):
    status, text = loaded("late")
    assert status == 200 and "success" in text.lower()
    card = client.models.list().data[-1]
    assert (card.id, card.root, card.parent) == ("late", ADAPTERS["adapter-3"], "demo")


@peer(LORA, "test_load_lora_adapter_with_same_name_replaces_inplace")
def test_load_inplace_replaces_an_adapter(client, loaded):
    expected = [greedy(client, "adapter-3"), greedy(client, "adapter-2")]
    assert expected[0] != expected[1]
    assert "success" in loaded("swapped", ADAPTERS["adapter-3"])[1].lower()
    assert greedy(client, "swapped") == expected[0]
    assert "success" in loaded("swapped", ADAPTERS["adapter-2"], load_inplace=True)[1].lower()
    assert greedy(client, "swapped") == expected[1]


@peer(LORA, "test_load_lora_adapter_with_load_inplace_false_errors")
def test_duplicate_name_is_refused(loaded):
    assert loaded("taken")[0] == 200
    status, text = loaded("taken")
    assert status == 400 and "already been loaded" in text


@peer(LORA, "test_dynamic_lora_not_found")
def test_missing_folder_is_not_found(served):
    assert load(served, "nowhere", "/not/an/adapter")[0] == 404


@peer(LORA, "test_dynamic_lora_invalid_files")
def test_unreadable_folder_is_an_internal_error(served, tmp_path):
    assert load(served, "unreadable", unreadable(tmp_path))[0] == 500


@peer(LORA, "test_dynamic_lora_badrequests[test_rank]")
def test_too_high_a_rank_is_an_internal_error(served, tmp_path):
    status, text = load(served, "high", changed(tmp_path / "high", r=1024))
    assert status == 500 and "rank" in text


@peer(LORA, "test_dynamic_lora_badrequests[test_dora]")
def test_dora_is_an_internal_error(served, tmp_path):
    status, text = load(served, "dora", changed(tmp_path / "dora", use_dora=True))
    assert status == 500 and "DoRA" in text


@peer(LORA, "test_dynamic_lora_badrequests[test_modules_to_save]")
def test_saved_output_layer_is_an_internal_error(served, tmp_path):
    status, text = load(served, "saved", changed(tmp_path / "saved", modules_to_save=["lm_head"]))
    assert status == 500 and "modules_to_save" in text


def refusals(served, tmp_path):
    folders = [unreadable(tmp_path), changed(tmp_path / "high", r=1024), changed(tmp_path / "dora", use_dora=True),
               changed(tmp_path / "saved", modules_to_save=["lm_head"])]
    return [load(served, folder.name, folder) for folder in folders]


def test_unsupported_adapters_are_refused_with_a_reason(served, tmp_path):
    """valora's behaviour where it differs: the folder is the client's fault."""
    answers = refusals(served, tmp_path)
    assert [status for status, _ in answers] == [400, 422, 422, 422]
    for (_, text), word in zip(answers, ["JSON", "rank", "dora", "lm_head"]):
        assert word.lower() in json.loads(text)["error"]["message"].lower()


@peer(LORA, "test_multiple_lora_adapters")
def test_ten_adapters_load_and_answer_at_once(client, loaded):
    faults = []

    def run(i):
        try:
            assert loaded(f"many-{i}")[0] == 200
            for _ in range(3):
                answer = client.completions.create(model=f"many-{i}", prompt=PROMPTS, max_tokens=5)
                assert len(answer.choices) == 2
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


@peer(LORA, "test_loading_invalid_adapters_does_not_break_others")
def test_failed_loads_do_not_affect_other_requests(client, served, loaded, tmp_path):
    over, faults, answers = threading.Event(), [], []

    def ask():
        while not over.is_set():
            try:
                answers.append(client.completions.create(model="adapter-3", prompt=PROMPTS, max_tokens=5))
            except Exception as error:
                faults.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    bad = unreadable(tmp_path)
    statuses = {load(served, "bad", path)[0] for path in ["/not/an/adapter"] * 25 + [bad] * 25}
    served.wait_until(lambda: answers or faults, "an answer beside the failed loads")
    over.set()
    thread.join()
    assert answers and not faults and 200 not in statuses
    assert loaded("fine")[0] == 200
    assert client.completions.create(model="fine", prompt=PROMPTS, max_tokens=5).choices[1].finish_reason


@peer(SERVING, "test_serving_model_name")
def test_answers_name_the_requested_model(client):
    for model in ("demo", "adapter-3"):
        assert client.completions.create(model=model, prompt="a", max_tokens=1).model == model


@peer(SERVING, "test_load_lora_adapter_success")
def test_load_message_equals_vllms(client, loaded):
    assert loaded("worded") == (200, "Success: LoRA adapter 'worded' added successfully.")
    assert "worded" in [card.id for card in client.models.list()]


@peer(SERVING, "test_load_lora_adapter_missing_fields")
def test_load_without_a_name_is_refused(served):
    status, text = load(served, "", "")
    assert status == 400 and json.loads(text)["error"]["type"] == "InvalidUserInput"


@peer(SERVING, "test_load_lora_adapter_duplicate")
def test_second_load_of_a_name_is_refused(client, loaded):
    assert loaded("twice")[0] == 200
    status, text = loaded("twice")
    assert status == 400 and json.loads(text)["error"]["type"] == "InvalidUserInput"
    assert [card.id for card in client.models.list()].count("twice") == 1


@peer(SERVING, "test_unload_lora_adapter_success")
def test_unload_message_equals_vllms(client, served, loaded):
    loaded("gone")
    assert unload(served, "gone") == (200, "Success: LoRA adapter 'gone' removed successfully.")
    assert "gone" not in [card.id for card in client.models.list()]


@peer(SERVING, "test_unload_lora_adapter_missing_fields")
def test_unload_without_a_name_is_refused(served):
    status, text = unload(served, "")
    assert status == 400 and json.loads(text)["error"]["type"] == "InvalidUserInput"


@peer(SERVING, "test_unload_lora_adapter_not_found")
def test_unload_of_an_unknown_adapter_is_404(served):
    status, text = unload(served, "nobody")
    assert status == 404 and json.loads(text)["error"]["type"] == "NotFoundError"


@peer(SERVING, "test_pooling_maybe_get_adapters_lora_name_sets_lora_request")
def test_embeddings_accept_an_adapter_by_name(client):
    base, adapter = (client.embeddings.create(model=model, input="hello").data[0].embedding for model in ("demo", "adapter-3"))
    assert base != adapter


@peer(SERVING, "test_pooling_maybe_get_adapters_unknown_model_raises")
def test_embeddings_of_an_unknown_model_are_404(client):
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="unknown-model", input="hello")


@peer(RESOLVERS, "test_serving_completion_with_lora_resolver")
def test_adapter_is_found_in_the_resolver_folder(client):
    answer = client.completions.create(model="found", prompt="Generate with LoRA", max_tokens=3)
    assert answer.model == "found" and "found" in [card.id for card in client.models.list()]


@peer(RESOLVERS, "test_serving_completion_resolver_not_found")
def test_adapter_missing_from_the_resolver_folder_is_404(client):
    with pytest.raises(openai.NotFoundError, match="nobody-at-all"):
        client.completions.create(model="nobody-at-all", prompt="what is 1+1?")


@peer(RESOLVERS, "test_serving_completion_resolver_add_lora_fails")
def test_unsupported_adapter_in_the_resolver_folder_is_refused(client):
    with pytest.raises(openai.BadRequestError, match="broken"):
        client.completions.create(model="broken", prompt="what is 1+1?")


@peer(MODELS, "test_check_models")
def test_base_is_listed_first(client):
    base, *adapters = client.models.list().data
    assert (base.id, base.root) == ("demo", str(DEMO / "model"))
    assert [card.id for card in adapters][:len(ADAPTERS)] == list(ADAPTERS)


@peer(MODELS, "test_retrieve_base_model")
def test_base_card_has_id_and_root(client):
    card = client.models.retrieve("demo")
    assert (card.id, card.root) == ("demo", str(DEMO / "model"))


@peer(MODELS, "test_retrieve_lora_model")
def test_adapter_card_has_id_and_root(client):
    card = client.models.retrieve("adapter-2")
    assert (card.id, card.root) == ("adapter-2", ADAPTERS["adapter-2"])


@peer(MODELS, "test_retrieve_unknown_model")
def test_unknown_model_card_is_404(client):
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.models.retrieve("nobody")
