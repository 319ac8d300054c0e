"""LoRA adapters and task heads against PEFT in fp32: alone, scaled, summed, and mixed in one batch."""

import json

import pytest
import torch
import transformers
from peft import PeftModel, TaskType

import checkpoints
from checkpoints import add_head, save_adapter
from pictures import clip, picture
from programs import Engine, EngineError, generate, token_ids
from reference import NO_MEDIA_TOKENS, Reference, expect_same

ADAPTERS = {
    "rank-1": dict(rank=1),
    "rank-3-attention": dict(rank=3, alpha=5, targets=["q_proj", "v_proj"]),
    "rank-8-rslora": dict(rank=8, use_rslora=True, targets=["q_proj", "k_proj", "o_proj", "down_proj"]),
    "rank-64-mlp": dict(rank=64, targets=["gate_proj", "up_proj", "down_proj"]),
    "rank-64": dict(rank=64, alpha=16),
    "patterns": dict(rank=4, alpha=6, rank_pattern={"q_proj": 7, r"layers\.0\.mlp\.up_proj": 2, "k_proj": 16},
                     alpha_pattern={"v_proj": 1, "down_proj": 11}),
    "patterns-rslora": dict(rank=9, use_rslora=True, rank_pattern={"o_proj": 1, "gate_proj": 31}, alpha_pattern={"o_proj": 3}),
    "one-layer-by-regex": dict(rank=5, targets=r".*layers\.1\.(self_attn\.k_proj|mlp\.gate_proj)"),
    "layers-to-transform": dict(rank=2, targets=["o_proj", "up_proj"], layers_to_transform=[0, 2], layers_pattern="layers"),
}
MODELS = ["text-grouped-tied", "vl-grouped-tied", "vl-small-patch"]
SAMPLING = {"max_tokens": 64, "ignore_eos": True, "temperature": 0, "logit_bias": NO_MEDIA_TOKENS}
TEXT = [{"role": "user", "content": "What is in this picture?"}]
IMAGES = [{"role": "user", "content": [picture(50, 80, 60), "and", picture(51, 50, 90), "differ how?"]}]
VIDEO = [{"role": "user", "content": [clip(52, 5, 60, 40), "What happens?"]}]


class Adapted:
    """One model with all adapters loaded, in the engine and in PEFT."""

    def __init__(self, model, folder, root):
        self.engine = Engine(folder)
        self.reference = Reference(folder)
        self.folders = {}
        self.sampling = SAMPLING | {"logprobs": model.config.get_text_config().vocab_size}
        for seed, (name, config) in enumerate(ADAPTERS.items()):
            self.folders[name] = save_adapter(model, root / name, 100 + seed, **config)
            self.reference.load_adapter(name, self.folders[name])
            assert self.engine.load(name, self.folders[name])["warnings"] == []

    def request(self, messages, *uses):
        adapters = [{"name": use, "scale": 1} if isinstance(use, str) else {"name": use[0], "scale": use[1]} for use in uses]
        return {"messages": messages, "adapters": adapters, "sampling": self.sampling}

    def expect_same(self, messages, *uses):
        request = self.request(messages, *uses)
        answer = self.engine.one(request)
        assert len(token_ids(answer)) == 64
        expect_same(self.reference, request, answer)
        return answer


@pytest.fixture(scope="module", params=MODELS)
def adapted(request, models, tmp_path_factory):
    made = Adapted(models.memory[request.param], models[request.param], tmp_path_factory.mktemp("adapters"))
    made.vl = checkpoints.family(request.param).has_images
    yield made
    made.engine.close()


def test_each_adapter_equals_peft(adapted):
    answers = [adapted.expect_same(TEXT, *use) for use in ([], *([name] for name in ADAPTERS))]
    # Makes sure that the comparison is meaningful: every adapter changes the answer differently. A random model may
    # give the same tokens with two adapters, so probabilities are compared.
    assert len({answer["choices"][0]["tokens"][0]["logprob"] for answer in answers}) == len(ADAPTERS) + 1
    for name in ("rank-3-attention", "patterns", "rank-64") if adapted.vl else ():
        adapted.expect_same(IMAGES, name)
        adapted.expect_same(VIDEO, name)


def test_scales_and_sums_equal_reference(adapted):
    adapted.expect_same(TEXT, ("rank-8-rslora", 0.25))
    adapted.expect_same(TEXT, ("patterns", -1.5))
    adapted.expect_same(TEXT, "rank-1", "rank-64-mlp")
    adapted.expect_same(IMAGES if adapted.vl else TEXT, ("rank-3-attention", 0.5), ("patterns", 2), ("rank-64", -0.25))
    assert token_ids(adapted.expect_same(TEXT, ("rank-1", 0))) == token_ids(adapted.expect_same(TEXT))


def test_mixed_batch_equals_each_alone(adapted):
    """Base model, mixed ranks, scales, sums and media in one submission."""
    uses = [[]] + [[name] for name in ADAPTERS] + [[("rank-1", 0.5)], ["rank-64", "rank-3-attention"], []]
    media = [TEXT, IMAGES, VIDEO] if adapted.vl else [TEXT]
    requests = [adapted.request(media[i % len(media)], *use) for i, use in enumerate(uses * 2)]
    for request, answer in zip(requests, adapted.engine.batch(requests)):
        assert len(token_ids(answer)) == 64
        expect_same(adapted.reference, request, answer)


def test_unknown_and_unloaded_adapters_are_refused(adapted):
    with pytest.raises(EngineError, match="`nobody` does not exist"):
        adapted.engine.one(adapted.request(TEXT, "nobody"))
    adapted.engine.load("twice", adapted.folders["rank-1"])
    with pytest.raises(EngineError, match="already been loaded"):
        adapted.engine.load("twice", adapted.folders["rank-1"])
    adapted.engine.unload("twice")
    with pytest.raises(EngineError, match="`twice` does not exist"):
        adapted.engine.one(adapted.request(TEXT, "twice"))


def test_command_line_sums_adapters(models, tmp_path):
    model = models.memory["text-grouped-tied"]
    folders = [save_adapter(model, tmp_path / f"a{i}", 200 + i, rank=3 + i) for i in range(2)]
    answer = generate(models["text-grouped-tied"], "--adapter", f"{folders[0]}:0.5", "--adapter", folders[1],
                      "--prompt", "What is in this picture?", "--max-tokens", 16, "--ignore-eos")
    reference = Reference(models["text-grouped-tied"])
    for i, folder in enumerate(folders):
        reference.load_adapter(str(i), folder)
    request = {"messages": TEXT, "adapters": [{"name": "0", "scale": 0.5}, {"name": "1"}]}
    prompt, logits = reference.next_token_logits(request, answer["token_ids"])
    assert answer["prompt_token_ids"] == prompt.ids
    assert answer["token_ids"] == logits.argmax(-1).tolist()


# ---- task heads ----

HEADS = {"two": (["no", "yes"], False), "eleven": ([f"digit {i}" for i in range(11)], True), "one": (["value"], True)}


def test_heads_of_several_sizes_share_a_batch(models, tmp_path):
    """Heads with 1, 2 and 11 labels, with and without adapted linears, along with generation
    requests."""
    name = "vl-small-patch"
    model, reference, hidden = models.memory[name], Reference(models[name]), models.memory[name].config.text_config.hidden_size
    with Engine(models[name]) as engine:
        weights = {}
        for seed, (head, (labels, bias)) in enumerate(HEADS.items()):
            folder = save_adapter(model, tmp_path / head, 300 + seed, rank=2 + seed)
            reference.load_adapter(head, folder)
            add_head(folder, hidden, labels, 310 + seed, bias, add_generation_prompt=seed == 1,
                     problem_type="regression" if head == "one" else "single_label_classification")
            weights[head] = checkpoints.load_file(folder / "adapter_model.safetensors")
            engine.load(head, folder)
        requests = []
        for messages in (TEXT, IMAGES, VIDEO):
            requests += [{"messages": messages, "adapters": [{"name": head}], "task": "classify"} for head in HEADS]
            requests.append({"messages": messages, "adapters": [{"name": "two"}], "head": "", "sampling": SAMPLING})
        for request, answer in zip(requests, engine.batch(requests)):
            head = request["adapters"][0]["name"]
            asked = request | {"add_generation_prompt": "head" in request or head == "eleven"}
            prompt, logits, states = reference.forward(asked)
            assert answer["prompt_token_ids"] == prompt.ids
            if "head" in request:
                assert token_ids(answer)[0] == (logits[-1] + bias_row(logits)).argmax()
                continue
            expected = states[-1] @ weights[head]["base_model.model.score.weight"].T
            expected = expected + weights[head].get("base_model.model.score.bias", 0)
            expect_classification(answer, HEADS[head][0], expected, regression=head == "one")


def bias_row(logits):
    row = torch.zeros(logits.shape[-1])
    for token, bias in NO_MEDIA_TOKENS:
        row[token] = bias
    return row


def expect_classification(answer, labels, logits, regression=False):
    result = answer["classification"]
    assert result["labels"] == labels and result["head"] == "score"
    torch.testing.assert_close(torch.tensor(result["logits"]), logits, atol=1e-4, rtol=1e-5)
    probs = logits if regression else logits.softmax(-1)
    torch.testing.assert_close(torch.tensor(result["probs"]), probs, atol=1e-4, rtol=1e-5)
    assert result["best"] == int(logits.argmax())
    assert answer["choices"] == [] and answer["usage"]["completion_tokens"] == 0


@pytest.mark.parametrize("labels", [2, 5, 37])
def test_peft_sequence_classifier_equals_reference(models, tmp_path, labels):
    """An adapter trained as PEFT's SEQ_CLS, with its score layer in modules_to_save, against the complete PEFT model."""
    name = "text-one-layer"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(models[name], num_labels=labels, pad_token_id=0)
    checkpoints.randomise(model, 400 + labels)
    base = transformers.Qwen2ForCausalLM.from_pretrained(models[name])
    model.model.load_state_dict(base.model.state_dict())
    folder = save_adapter(model, tmp_path / "adapter", 410 + labels, rank=6, task_type=TaskType.SEQ_CLS)
    answer = generate(models[name], "--adapter", folder, "--classify", "--prompt", "Is it red?")
    served = PeftModel.from_pretrained(model, folder).eval()
    with torch.no_grad():
        logits = served(input_ids=torch.tensor([answer["prompt_token_ids"]])).logits[0]
    assert [entry["label"] for entry in answer["labels"]] == [f"LABEL_{i}" for i in range(labels)]
    torch.testing.assert_close(torch.tensor([entry["logit"] for entry in answer["labels"]]), logits, atol=1e-4, rtol=1e-5)
    assert answer["label"] == f"LABEL_{int(logits.argmax())}"


def test_multi_label_head_thresholds_and_head_can_be_chosen(models, tmp_path):
    name = "text-grouped-tied"
    hidden = models.memory[name].config.hidden_size
    folder = save_adapter(models.memory[name], tmp_path / "two-heads", 500, rank=2)
    reference = Reference(models[name])
    reference.load_adapter("a", folder)
    add_head(folder, hidden, ["red", "green", "blue"], 501, True, problem_type="multi_label_classification")
    add_head(folder, hidden, ["no", "yes"], 502, False, name="classifier")
    weights = checkpoints.load_file(folder / "adapter_model.safetensors")
    request = {"messages": TEXT, "adapters": [{"name": "a"}], "task": "classify"}
    with Engine(models[name]) as engine:
        engine.load("a", folder)
        with pytest.raises(EngineError, match="several heads"):
            engine.one(request)
        result = engine.one(request | {"head": "score"})["classification"]
        other = engine.one(request | {"head": "classifier"})["classification"]
        text = engine.one(request | {"head": "score", "task": "generate"})["choices"][0]
    state = reference.forward(request | {"add_generation_prompt": False})[2][-1]
    logits = state @ weights["base_model.model.score.weight"].T + weights["base_model.model.score.bias"]
    torch.testing.assert_close(torch.tensor(result["logits"]), logits, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(torch.tensor(result["probs"]), logits.sigmoid(), atol=1e-4, rtol=1e-5)
    assert other["labels"] == ["no", "yes"]
    # The same prompt when labels are requested as text: the assistant's turn stays closed, as in the head's
    # training.
    assert text["text"] == ", ".join(label for label, p in zip(["red", "green", "blue"], logits.sigmoid()) if p >= 0.5)


def test_adapter_with_older_names_equals_reference(models, tmp_path):
    """An adapter saved before transformers 4.52 names model.layers of Qwen2-VL, but is the same
    adapter."""
    name = "vl-grouped-tied"
    new = save_adapter(models.memory[name], tmp_path / "new", 600, rank=4)
    old = save_adapter(models.memory[name], tmp_path / "old", 600, rank=4)
    tensors = checkpoints.load_file(old / "adapter_model.safetensors")
    assert all(".model.language_model.layers." in key for key in tensors)
    checkpoints.save_file({key.replace(".model.language_model.layers.", ".model.layers."): value
                           for key, value in tensors.items()}, old / "adapter_model.safetensors")
    with Engine(models[name]) as engine:
        engine.load("new", new)
        engine.load("old", old)
        request = {"messages": IMAGES, "sampling": SAMPLING}
        answers = engine.batch([request | {"adapters": [{"name": n}]} for n in ("new", "old")] + [request])
    assert token_ids(answers[0]) == token_ids(answers[1]) != token_ids(answers[2])


def test_refused_adapter_names_the_reason(models, tmp_path):
    folder = save_adapter(models.memory["text-one-layer"], tmp_path / "dora", 700, rank=2)
    config = json.loads((folder / "adapter_config.json").read_text())
    (folder / "adapter_config.json").write_text(json.dumps(config | {"use_dora": True}))
    done = generate(models["text-one-layer"], "--adapter", folder, "--prompt", "x", check=False)
    assert done.returncode == 1 and "use_dora" in done.stderr
