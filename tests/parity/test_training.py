"""Training steps against transformers, PEFT and torch's AdamW: losses and updates over 20 steps, including heads."""

import json
import os
import signal
import subprocess
import time

import peft
import pytest
import torch
from safetensors.torch import load_file

import checkpoints
from checkpoints import save_adapter
from pictures import picture
from programs import find_program
from reference import Reference
from wide import sample

MODELS = ["vl-grouped-tied", "vl-one-layer", "vl25-odd-windows", "llava-default", *checkpoints.LLAMA_SHAPED.values()]
PARITY = dict(steps=20, batch=3, learning_rate=3e-3, warmup=0.1, shuffle=False)
LABELS = ["red", "green", "blue", "grey"]
ANSWERS = ["a cat", "Two red cars, one bus.", "7", "the left one", "no"]


class TrainingError(Exception):
    pass


def train(request, check=True):
    done = subprocess.run([find_program("trainer_probe")], input=json.dumps(request), capture_output=True, text=True, timeout=300)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    if check and "error" in answer:
        raise TrainingError(answer["error"]["message"])
    return answer


def samples(reference, count=8, heads=False):
    """Prompts with and without a picture, of different lengths; every third has two pictures."""
    made = []
    for i in range(count):
        content = [picture(i, 60 + 14 * (i % 3), 70)] * (1 + (i % 3 == 0)) if reference.family.has_images and i % 4 != 3 else []
        sample = {"messages": [{"role": "user", "content": [*content, "What is this?" + " And then?" * (i % 3)]}], "weight": 1 + i % 2}
        if not heads or i % 3 != 1:
            sample["answer"] = ANSWERS[i % len(ANSWERS)]
        if heads and i % 2 == 0:
            sample |= {"trained_head": 0, "labels": [i % len(LABELS)]}
        if heads and i % 4 == 3:
            sample |= {"trained_head": 1, "labels": [0, 2]}
        made.append(sample)
    return made


class ReferenceTraining:
    """The same training with PEFT: one sample at a time, with accumulated gradients."""

    def __init__(self, reference, init, heads, options):
        self.reference, self.options = reference, options
        self.model = peft.PeftModel.from_pretrained(reference.base, init, is_trainable=True).train()
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        self.heads = heads
        self.activated = bool(self.model.peft_config["default"].alora_invocation_tokens)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad] + list(heads.values())
        for parameter in self.parameters:  # unused parameters have a zero gradient, as in our trainer
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer = torch.optim.AdamW(self.parameters, lr=options["learning_rate"], weight_decay=0.01)
        warmup = -(-options["warmup"] * options["steps"] // 1)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: cosine(step, options["steps"], warmup))

    def losses(self, sample):
        """(sum over answer tokens, number of tokens, loss of the head)"""
        family = self.reference.family
        prompt = self.reference.prompt(sample)
        answer = [*family.tokenizer().encode(sample["answer"], add_special_tokens=False).ids, family.special_id(family.eos)] if "answer" in sample else []
        ids = torch.tensor([prompt.ids + answer])
        if self.activated:  # offsets count from the end, and the invocation is the prompt's
            offset = peft.tuners.lora.variants.calculate_alora_offsets(self.model.peft_config, "default", torch.tensor([prompt.ids]))[0]
            prompt.inputs["alora_offsets"] = [offset and offset + len(answer)]
        out = self.model(input_ids=ids, attention_mask=torch.ones_like(ids), output_hidden_states=True, use_cache=False, **family.token_types(ids),
                         **prompt.inputs)
        begin = len(prompt.ids)
        language = torch.nn.functional.cross_entropy(out.logits[0, begin - 1:begin - 1 + len(answer)], torch.tensor(answer, dtype=torch.long), reduction="sum")
        head = None
        if "trained_head" in sample:
            logits = out.hidden_states[-1][0, begin - 1] @ list(self.heads.values())[sample["trained_head"]].T
            if sample["trained_head"] == 0:
                head = torch.nn.functional.cross_entropy(logits, torch.tensor(sample["labels"][0]))
            else:
                wanted = torch.zeros_like(logits).index_fill(0, torch.tensor(sample["labels"]), 1)
                head = torch.nn.functional.binary_cross_entropy_with_logits(logits, wanted)
        return language, len(answer), head

    def step(self, batch):
        parts = [self.losses(sample) for sample in batch]
        weights = [sample["weight"] for sample in batch]
        loss = sum(w * p[0] for w, p in zip(weights, parts)) / sum(w * p[1] for w, p in zip(weights, parts))
        if any(p[2] is not None for p in parts):
            loss = loss + sum(w * p[2] for w, p in zip(weights, parts) if p[2] is not None) / sum(w for w, p in zip(weights, parts) if p[2] is not None)
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.schedule.step()
        return loss.item(), norm.item()

    def tensors(self):
        found = {name: tensor.detach() for name, tensor in peft.get_peft_model_state_dict(self.model).items()}
        return found | {f"base_model.model.{name}.weight": head.detach() for name, head in self.heads.items()}


def cosine(step, steps, warmup):
    """transformers' get_cosine_schedule_with_warmup."""
    import transformers.optimization as optimization
    return optimization._get_cosine_schedule_with_warmup_lr_lambda(step, num_warmup_steps=warmup, num_training_steps=steps, num_cycles=0.5)


def request_of(folder, init, output, made, options=PARITY, targets=("decoder",), heads=(), **more):
    return {"model": str(folder), "init": str(init), "output": str(output), "rank": 4, "alpha": 8, "targets": list(targets),
            "heads": list(heads), "options": options, "sources": [{"samples": made}]} | more


def compare(reference, init, made, answer, output, heads, options=PARITY):
    training = ReferenceTraining(reference, init, heads, options)
    before = {name: tensor.clone() for name, tensor in training.tensors().items()}
    for step in range(options["steps"]):
        batch = [made[(step * options["batch"] + i) % len(made)] for i in range(options["batch"])]
        loss, norm = training.step(batch)
        assert answer["losses"][step] == pytest.approx(loss, rel=1e-5), step
        assert answer["norms"][step] == pytest.approx(norm, rel=1e-4), step
    ours = load_file(output / "adapter_model.safetensors")
    assert ours.keys() == before.keys()
    for name, tensor in training.tensors().items():
        update = tensor - before[name]
        assert update.norm() > 0, name
        assert (ours[name] - before[name] - update).norm() <= 1e-3 * update.norm(), name


@pytest.fixture(params=MODELS)
def setting(request, models, tmp_path):
    init = save_adapter(models.memory[request.param], tmp_path / "init", 11, rank=4, **targets_of(request.param, "decoder"))
    return models[request.param], Reference(models[request.param]), init, tmp_path / "out"


def targets_of(name, part):
    """PEFT targets that adapt the decoder, or the whole model, without linears of the same name in the tower."""
    if part == "decoder" and name.startswith(("llava", "vl25")):
        return {"targets": r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj|gate_proj|up_proj|down_proj)"}
    return {}


def test_twenty_steps_equal_peft(setting):
    folder, reference, init, output = setting
    made = samples(reference)
    answer = train(request_of(folder, init, output, made))
    compare(reference, init, made, answer, output, {})


@pytest.mark.parametrize("name", ["vl-grouped-tied", "llama3-scaled"])
def test_activated_adapters_are_trained_from_their_invocation_on(models, tmp_path, name):
    """A third of the samples lacks the invocation: the adapter has no part in their losses."""
    reference, output = Reference(models[name]), tmp_path / "out"
    made = samples(reference)
    ids = [reference.prompt(sample).ids for sample in made]
    end = next(i for i in range(1, len(ids[1])) if ids[1][-i] != ids[0][-i])
    invocation = ids[1][-end - 1:len(ids[1]) - end + 1]
    found = [any(one[k:k + 2] == invocation for k in range(len(one))) for one in ids]
    assert found == [i % 3 != 0 for i in range(len(made))]
    init = save_adapter(models.memory[name], tmp_path / "init", 11, rank=4, task_type="CAUSAL_LM", alora_invocation_tokens=invocation,
                        **targets_of(name, "decoder"))
    answer = train(request_of(models[name], init, output, made, invocation=invocation))
    compare(reference, init, made, answer, output, {})
    assert json.loads((output / "adapter_config.json").read_text())["alora_invocation_tokens"] == invocation


@pytest.mark.parametrize("setting", sample([*MODELS, "vl3-grouped-tied"], 4), indirect=True)
def test_micro_batches_and_recomputation_change_no_result(setting):
    folder, reference, init, output = setting
    made = samples(reference)
    plain = train(request_of(folder, init, output, made))
    for more in [{"tokens_per_pass": 1}, {"recompute": True}, {"recompute": True, "tokens_per_pass": 90}, {"visual_cache_bytes": 0},
                 {"logits_at_once": 1}, {"logits_at_once": 4000}]:
        other = train(request_of(folder, init, output, made, PARITY | more))
        assert other["losses"] == pytest.approx(plain["losses"], rel=2e-6), more


@pytest.mark.parametrize("name", ["vl-grouped-tied", "llava-default"])
def test_heads_are_trained_with_the_language_model(models, tmp_path, name):
    from checkpoints import add_head
    hidden = models.memory[name].config.get_text_config().hidden_size
    init = save_adapter(models.memory[name], tmp_path / "init", 12, rank=4, **targets_of(name, "decoder"))
    add_head(init, hidden, LABELS, 5, False, name="colour", add_generation_prompt=True)
    add_head(init, hidden, LABELS[:3], 6, False, name="many", problem_type="multi_label_classification", add_generation_prompt=True)
    reference = Reference(models[name])
    made = samples(reference, heads=True)
    heads = [{"name": "colour", "labels": LABELS}, {"name": "many", "labels": LABELS[:3], "multi_label": True}]
    answer = train(request_of(models[name], init, tmp_path / "out", made, heads=heads))
    tensors = load_file(init / "adapter_model.safetensors")
    own = {h["name"]: torch.nn.Parameter(tensors[f"base_model.model.{h['name']}.weight"].clone()) for h in heads}
    bare = save_adapter(models.memory[name], tmp_path / "bare", 12, rank=4, **targets_of(name, "decoder"))
    compare(reference, bare, made, answer, tmp_path / "out", own)


@pytest.mark.parametrize("name", sample(["vl-grouped-tied", "llava-default", "vl25-odd-windows", "vl3-grouped-tied", "smolvlm-tied",
                                         "internvl-tied", "next-mistral", "onevision-tied", "pixtral", "mistral3-tied", "gemma3"], 6))
def test_tower_and_projector_are_trained(models, tmp_path, name):
    """Every linear that adapters may target: PEFT's "all-linear" without the output layer."""
    init = save_adapter(models.memory[name], tmp_path / "init", 13, rank=4, targets="all-linear", exclude_modules=["lm_head"])
    reference = Reference(models[name])
    made = samples(reference)
    answer = train(request_of(models[name], init, tmp_path / "out", made, targets=["decoder", "vision", *([] if name == "gemma3" else ["projector"])]))
    compare(reference, init, made, answer, tmp_path / "out", {})


def test_written_folder_loads_in_peft_unchanged(setting):
    """transformers + PEFT must give the adapter's answers from the written folder, without missing or unknown
    tensors."""
    folder, reference, init, output = setting
    train(request_of(folder, init, output, samples(reference)))
    model = peft.PeftModel.from_pretrained(reference.base, output)
    loaded = peft.get_peft_model_state_dict(model)
    written = load_file(output / "adapter_model.safetensors")
    assert loaded.keys() == written.keys()
    for name, tensor in written.items():
        assert torch.equal(loaded[name], tensor), name


@pytest.mark.parametrize("setting", sample(MODELS, 3), indirect=True)
def test_killed_training_resumes(setting, tmp_path):
    """A training that is killed at any moment and resumed must write the same bytes."""
    folder, reference, init, output = setting
    made = samples(reference)
    options = PARITY | dict(steps=30, checkpoint_every=1, shuffle=True, dropout=0.1, seed=3)
    train(request_of(folder, init, output, made, options))
    whole = (output / "adapter_model.safetensors").read_bytes()
    request = request_of(folder, init, tmp_path / "resumed", made, options, checkpoint=str(tmp_path / "state.safetensors"))
    for delay in [0.4, 0.5, 0.6]:
        process = subprocess.Popen([find_program("trainer_probe")], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    train(request)
    assert (tmp_path / "resumed" / "adapter_model.safetensors").read_bytes() == whole


def test_checkpoint_of_another_training_is_refused(setting, tmp_path):
    folder, reference, init, output = setting
    made = samples(reference)
    state = str(tmp_path / "state.safetensors")
    train(request_of(folder, init, output, made, PARITY | dict(steps=2, checkpoint_every=1), checkpoint=state))
    with pytest.raises(TrainingError, match="another training"):
        train(request_of(folder, init, output, made[1:], PARITY | dict(steps=2, checkpoint_every=1), checkpoint=state))


def test_non_finite_loss_names_its_step(setting):
    folder, reference, init, output = setting
    with pytest.raises(TrainingError, match="step [2-9][0-9]*: the loss is"):
        train(request_of(folder, init, output, samples(reference), PARITY | dict(learning_rate=1e30, warmup=0, clip=0)))
    assert not output.exists()
