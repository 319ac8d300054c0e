"""Adapters beyond low-rank products of linears on an emulated GPU: all kinds, plain adapters and the base model in one batch, in all
modes, against transformers + PEFT with each alone; and steps replayed from graphs against those launched one by one."""

import itertools
import json
import os
import pathlib

import pytest

from checkpoints import save_adapter, save_model
from programs import DEVICE, REPOSITORY, Engine
from reference import Reference, expect_same
from rounded_weights import decoded_model
from test_activated_lora import MODELS as ACTIVATED_MODELS
from test_activated_lora import Case as ActivatedCase
from test_activated_lora import expect_all as expect_all_activated
from test_adapter_kinds import KINDS, LINEARS, TEXT
from test_adapter_kinds import MODELS as KIND_MODELS
from test_adapter_kinds import Case as KindsCase
from test_adapter_vocabularies import MODELS as VOCABULARY_MODELS
from test_adapter_vocabularies import Case as VocabulariesCase
from test_adapter_vocabularies import expect_all
from test_emulated_gpu import counted, expect_the_same_tokens
from test_generate_visual_adapters import ONE, PROJECTOR, TOWER
from wide import EVERYTHING

PROGRAMS = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cuda" or not PROGRAMS.is_dir(), reason="not built")]
MODES = ["unmerged", "merged", "mixture"]


def in_modes(models, *chosen):
    """Parameters (name, mode): all in `make conformance`, the chosen ones in `make test`."""
    return pytest.mark.parametrize("name, mode", itertools.product(models, MODES) if EVERYTHING else chosen)


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setenv("VALORA_BIN_DIR", str(PROGRAMS))


def expect_references(case, engine):
    requests = case.requests()
    for request, answer in zip(requests, engine.batch(requests), strict=True):
        case.expect(request, answer)


@in_modes(KIND_MODELS, ("text-one-layer", "unmerged"), ("llama2-biased", "mixture"))
def test_all_kinds_in_one_batch_equal_references(models, tmp_path, name, mode):
    case = KindsCase(name, models.memory[name], models[name], tmp_path)
    with case.engine(mode=mode, device="cuda") as engine:
        expect_references(case, engine)
        if mode == "unmerged":
            expect_references(case, engine)  # with cached prefixes
        assert (engine.stats()["merges"] == 0) == (mode == "unmerged")


@pytest.mark.parametrize("options", [{"mode": "mixture", "pool_memory": 900 << 10, "max_model_len": 256}, {"kernels": "reference"}], ids="-".join)
def test_small_pool_and_reference_kernels_change_no_answer(models, tmp_path, options):
    """In the small pool, matrices and factors come back in other blocks."""
    name = "text-one-layer"
    case = KindsCase(name, models.memory[name], models[name], tmp_path)
    with case.engine(device="cuda", **options) as engine:
        expect_references(case, engine)
        assert "pool_memory" not in options or engine.stats()["adapters_left"] > 0


@pytest.mark.parametrize("name, ranks, mode", [("llama2-biased", 3, "mixture"), ("text-one-layer", 5, "merged"),
                                               ("vl-grouped-tied", 2, "unmerged")][:3 if EVERYTHING else 1])
def test_ranks_equal_references(models, tmp_path, monkeypatch, name, ranks, mode):
    """Embeddings and output layers are on the first GPU, each rank's gains and shifts on its own."""
    monkeypatch.setenv("VALORA_EMULATED_GPUS", str(ranks))
    case = KindsCase(name, models.memory[name], models[name], tmp_path)
    with case.engine(device="cuda", mode=mode, tensor_parallel_size=ranks) as engine:
        expect_references(case, engine)


@in_modes(VOCABULARY_MODELS, ("text-one-layer", "mixture"))
def test_tokens_of_an_adapters_own_equal_references(models, tmp_path, name, mode):
    expect_all(VocabulariesCase(name, models, tmp_path), mode=mode, device="cuda")


@in_modes(ACTIVATED_MODELS, ("text-one-layer", "mixture"))
def test_activated_lora_equals_references(models, tmp_path, name, mode):
    expect_all_activated(ActivatedCase(name, models, tmp_path), mode=mode, device="cuda")


@pytest.mark.parametrize("name", ["vl-grouped-tied", "llava-default"][:2 if EVERYTHING else 1])
def test_gains_and_shifts_of_the_tower_equal_references(models, tmp_path, name):
    reference, kinds = Reference(models[name]), {"dora": dict(rank=5, targets=TOWER, use_dora=True),
                                                 "biased": dict(rank=3, targets=PROJECTOR, lora_bias=True)}
    sampling = {"max_tokens": 4, "ignore_eos": True, "temperature": 0, "logprobs": models.memory[name].config.get_text_config().vocab_size,
                "logit_bias": reference.family.no_media_tokens()}
    with Engine(models[name], device="cuda") as engine:
        for i, (kind, config) in enumerate(kinds.items()):
            folder = save_adapter(models.memory[name], tmp_path / kind, 940 + i, **config)
            reference.load_adapter(kind, folder)
            engine.load(kind, folder)
        requests = [{"messages": ONE, "sampling": sampling, "adapters": [{"name": kind} for kind in uses]} for uses in ([], ["dora"], ["biased"])]
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer)


def test_gains_beside_rounded_weights(models, tmp_path):
    """DoRA's norms are those of the weights that `--quantization` serves."""
    name = "text-grouped-tied"
    model = models.memory[name]
    reference = Reference(save_model(decoded_model(model, 4), tmp_path / "decoded"))
    folder = save_adapter(model, tmp_path / "dora", 944, rank=4, targets=LINEARS, use_dora=True)
    reference.load_adapter("dora", folder)
    request = {"messages": TEXT, "adapters": [{"name": "dora"}],
               "sampling": {"max_tokens": 6, "ignore_eos": True, "temperature": 0, "logprobs": model.config.get_text_config().vocab_size}}
    with Engine(models[name], device="cuda", quantization="int4") as engine:
        engine.load("dora", folder)
        expect_same(reference, request, engine.one(request))


@pytest.mark.parametrize("mode", MODES if EVERYTHING else ["mixture"])
def test_kinds_in_captured_steps(models, tmp_path, mode):
    """In bf16, against separate launches: gains, shifts, embeddings and output layers of changing adapters in replayed steps."""
    name = "llama3-scaled"
    kinds = {kind: KINDS[kind] for kind in ("embedding", "saved", "plain", "lora-bias")} | {
        f"dora{rank}": dict(rank=rank, targets=LINEARS, use_dora=True) for rank in (2, 3)}
    folders = {kind: save_adapter(models.memory[name], tmp_path / kind, 920 + i, **config) for i, (kind, config) in enumerate(kinds.items())}
    uses = [[kind] for kind in folders] + [[], ["lora-bias", "plain"]]
    requests = [{"messages": TEXT, "adapters": [{"name": use} for use in names],
                 "sampling": {"max_tokens": 4 + i, "ignore_eos": True, "temperature": 0, "logprobs": 4}} for i, names in enumerate(uses)]
    answers, counts = {}, {}
    for capture in ("none", "all"):
        report = tmp_path / f"{capture}.json"
        with Engine(models[name], counted(report, capture), dtype="bfloat16", device="cuda", mode=mode, max_num_batched_tokens=64) as engine:
            for kind, folder in folders.items():
                engine.load(kind, folder)
            answers[capture] = [answer for _ in range(3) for answer in engine.batch(requests)]
            steps = engine.stats()["steps"]
        counts[capture] = json.loads(report.read_text())
    expect_the_same_tokens(answers["none"], answers["all"])
    assert counts["none"]["replays"] == 0
    assert counts["all"]["replays"] > 0.4 * steps, (counts, steps)
