"""Several ranks must give the answers of one, which are those of transformers + PEFT: all families, modes and kinds of
adapters."""

import pytest
import torch

from checkpoints import save_adapter
from pictures import picture
from programs import DEVICE, Engine, EngineError, generate, token_ids, wait_until_idle
from reference import Reference, expect_same
from test_adapter_kinds import Case
from test_generate_modes import Setting, expect_the_same_answers
from wide import pairs, sample

pytestmark = pytest.mark.skipif(DEVICE == "cuda", reason="served on CPUs only")

# Decoder sizes that do not divide evenly among the ranks; with more ranks than key/value heads, several ranks share a head.
RANKS = [("text-grouped-tied", 2), ("text-grouped-tied", 6), ("llama2-biased", 3), ("llama3-scaled", 4), ("vl-grouped-tied", 2),
         ("vl25-odd-windows", 5), ("llava-default", 2), ("qwen3-windows", 2), ("mistral-windows", 6), ("vl3-grouped-tied", 2),
         ("smolvlm-tied", 2), ("idefics3-text-tiles", 4), ("internvl-tied", 2), ("internvl-qwen3", 4),
         ("onevision-tied", 2), ("mistral3-tied", 4)]
MODES = ["unmerged", "merged", "mixture"]


@pytest.fixture(scope="module")
def settings(models, tmp_path_factory):
    made = {}

    def setting(name):
        if name not in made:
            made[name] = Setting(name, models.memory[name], models[name], tmp_path_factory.mktemp("ranks"))
            made[name].alone = made[name].answers("unmerged")[0]
        return made[name]
    return setting


@pytest.mark.parametrize("case, mode", pairs(sample(RANKS, 10), MODES), ids=str)
def test_ranks_equal_a_single_rank(settings, case, mode):
    name, ranks = case
    setting = settings(name)
    answers, stats = setting.answers(mode, tensor_parallel_size=ranks)
    for request, answer in zip(setting.requests, answers, strict=True):
        expect_same(setting.reference, request, answer)
    expect_the_same_answers(setting.alone, answers)
    assert (stats["merges"] == 0) == (mode == "unmerged")
    assert stats["collectives"] > 0


@pytest.fixture(scope="module")
def short(models, tmp_path_factory):
    name = "text-grouped-tied"
    return Setting(name, models.memory[name], models[name], tmp_path_factory.mktemp("short"), tokens=8)


@pytest.mark.parametrize("mode, options", [("merged", {"merge": "inplace"}), ("mixture", {"merge": "inplace"}), ("valora", {}),
                                           ("unmerged", {"max_num_batched_tokens": 13, "threads": 4})])
def test_merge_placement_changes_no_answer(short, mode, options):
    answers, stats = short.answers(mode, tensor_parallel_size=2, **options)
    for request, answer in zip(short.requests, answers, strict=True):
        expect_same(short.reference, request, answer)
    assert (stats["merges"] == 0) == (mode == "unmerged")


@pytest.mark.parametrize("ranks_of, mode", pairs([("text-one-layer", 5), ("llama2-biased", 3), ("vl-grouped-tied", 2)], MODES), ids=str)
def test_all_adapter_kinds_equal_reference(models, tmp_path, ranks_of, mode):
    name, ranks = ranks_of
    case = Case(name, models.memory[name], models[name], tmp_path)
    with case.engine(mode=mode, tensor_parallel_size=ranks) as engine:
        requests = case.requests()
        for _ in range(2):  # the second time with cached prefixes
            for request, answer in zip(requests, engine.batch(requests), strict=True):
                case.expect(request, answer)
        assert engine.stats()["prefix_hits"] > 0


WORDS = "the image shows a red circle left of two small squares "
REQUESTS = [{"messages": [{"role": "user", "content": [WORDS * (i % 3), *([picture(60, 90, 60)] if i % 4 == 0 else []), f"Number {i}."]}],
             "sampling": {"max_tokens": 48, "ignore_eos": True, "temperature": 0, "logprobs": 2}} for i in range(12)]


def firm(answer):
    tokens = answer["choices"][0]["tokens"]
    close = [i for i, token in enumerate(tokens) if token["top_logprobs"][0] - token["top_logprobs"][1] < 1e-4]
    return token_ids(answer)[:min(close, default=len(tokens))]


def expect_the_same_from_a_small_pool(folder, adapter, **options):
    """Preempted and swapped requests, with and without an adapter, must answer as they do alone on one CPU
    rank."""
    requests = [request | ({"adapters": [{"name": "a"}]} if i % 3 == 0 else {}) for i, request in enumerate(REQUESTS)]
    with Engine(folder) as engine:
        engine.load("a", adapter)
        alone = [firm(engine.one(request)) for request in requests]
        block = 16 * engine.model["kv_token_bytes"]
    assert sum(map(len, alone)) >= 0.7 * 48 * len(requests)
    # Adapters take blocks too: in models this small, blocks are larger than their KV.
    with Engine(folder, pool_memory=64 << 20, **options) as engine:
        pool_block = (64 << 20) // engine.model["kv_blocks"]
    with Engine(folder, pool_memory=40 * pool_block, swap_space=400 * block, max_num_batched_tokens=64, **options) as engine:
        engine.load("a", adapter)
        for _ in range(6):  # what is read back depends on the speed of the swap file
            for own, answer in zip(alone, engine.batch(requests), strict=True):
                assert token_ids(answer)[:len(own)] == own
            wait_until_idle(engine)
            stats = engine.stats()
            if stats["preemptions"] > 0 and stats["reads"] > 0:
                return
    pytest.fail(f"nothing was preempted and read back: {stats}")


def test_swapping_and_preemption_change_no_answer(models, tmp_path):
    name = "vl-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 741, rank=8, targets="all-linear")
    expect_the_same_from_a_small_pool(models[name], adapter, tensor_parallel_size=2)


def test_adapters_cause_no_communication_between_ranks(models, tmp_path):
    """S-LoRA §6: two all-reduces per layer, 2 (N - 1) / N of the values on each rank, and the parts of the logits."""
    name, ranks = "text-grouped-tied", 2
    text = models.memory[name].config.get_text_config()
    adapter = save_adapter(models.memory[name], tmp_path / "a", 742, rank=8)
    request = {"tokens": list(range(10, 31)), "sampling": {"max_tokens": 9, "ignore_eos": True, "temperature": 0}}
    moved = []
    for uses in ([], [{"name": "a"}]):
        with Engine(models[name], tensor_parallel_size=ranks) as engine:
            engine.load("a", adapter)
            engine.one(request | {"adapters": uses})
            wait_until_idle(engine)
            moved.append(engine.stats()["collective_bytes"])
    rows = len(request["tokens"]) + 9 - 1
    sums = 2 * text.num_hidden_layers * rows * text.hidden_size * 2 * (ranks - 1)
    logits = 9 * (text.vocab_size - text.vocab_size // ranks)
    assert moved == [4 * (sums + logits)] * 2


@pytest.mark.parametrize("name, dtype, kv", [
    ("vl-grouped-tied", "bfloat16", "auto"), ("vl-grouped-tied", "float32", "int8"), ("vl-grouped-tied", "bfloat16", "fp8"),
    ("vl3-moe", "bfloat16", "auto")])
def test_bf16_error_is_that_of_a_single_rank(models, tmp_path, name, dtype, kv):
    """Rounding is the same as with one rank, but sums may differ in their last bits before it, and outputs of experts are not rounded
    before they are added."""
    adapter = save_adapter(models.memory[name], tmp_path / "a", 743, rank=8, targets="all-linear")
    reference = Reference(models[name])
    reference.load_adapter("a", adapter)
    vocab = models.memory[name].config.get_text_config().vocab_size
    requests = [request | {"adapters": [{"name": "a"}] * (i % 2), "sampling": request["sampling"] | {
        "max_tokens": 1, "logprobs": vocab, "logit_bias": reference.family.no_media_tokens()}} for i, request in enumerate(REQUESTS)]
    distances = []
    for ranks in (1, 2):
        with Engine(models[name], dtype=dtype, kv_cache_dtype=kv, tensor_parallel_size=ranks) as engine:
            engine.load("a", adapter)
            answers = engine.batch(requests)
        distances.append(sum(distance(reference, request, answer) for request, answer in zip(requests, answers, strict=True)))
    assert 0 < distances[1] <= 1.25 * distances[0], distances


def distance(reference, request, answer):
    token = answer["choices"][0]["tokens"][0]
    row = torch.empty(len(token["top_ids"]))
    row[token["top_ids"]] = torch.tensor(token["top_logprobs"])
    return (row - reference.next_token_logits(request, [0])[1][0].log_softmax(-1)).abs().mean().item()


def test_lazy_adapters_and_command_line_work_on_ranks(models, tmp_path):
    name = "text-grouped-tied"
    adapter = save_adapter(models.memory[name], tmp_path / "a", 744, rank=8)
    arguments = ("--adapter", f"{adapter}:0.5", "--prompt", "What is it?", "--max-tokens", 12, "--ignore-eos")
    answers = [generate(models[name], *arguments, *more)["token_ids"] for more in
               ([], ["--tensor-parallel-size", "2"], ["-tp", "2", "--mode", "mixture"])]
    assert answers.count(answers[0]) == 3


@pytest.mark.parametrize("options, words", [
    ({"tensor_parallel_size": 0}, "must be at least 1"),
    ({"tensor_parallel_size": 65}, "at most 64 ranks"),
    ({"tensor_parallel_size": 4}, "the 6 attention heads of Qwen2ForCausalLM do not divide evenly"),
    ({"tensor_parallel_size": 3}, "the 2 heads of keys and values of Qwen2ForCausalLM neither divide evenly nor"),
    ({"tensor_parallel_size": 2, "kernels": "reference"}, "ranks need --kernels native"),
])
def test_unsupported_settings_are_refused(models, options, words):
    with pytest.raises(EngineError, match=words):
        Engine(models["text-grouped-tied"], **options)
