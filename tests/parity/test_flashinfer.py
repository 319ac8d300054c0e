"""Prompts by FlashInfer's kernels (VALORA_GPU_PREFILL): on a GPU, or, without one, by what takes their place in the emulation,
which reads the same plans (docs/rooms/emulation.md)."""

import json
import os
import pathlib

import pytest

import checkpoints
import families
from programs import DEVICE, REPOSITORY, Engine, EngineError, token_ids
from reference import Reference
from test_tensor_parallel import distance

EMULATED = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build")) / "emulated_gpu"
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(DEVICE != "cuda" and not EMULATED.is_dir(), reason="not built")]
SAMPLING = {"max_tokens": 3, "ignore_eos": True, "temperature": 0}


@pytest.fixture(scope="module", params=[64, 128])
def folder(request, tmp_path_factory):
    """A model with heads of a size that FlashInfer has."""
    config = checkpoints.qwen3(48, 4, 2, 2, 37, True, head_dim=request.param)
    model = checkpoints.randomise(families.family_of(config).kind(config), request.param)
    return checkpoints.save_model(model, tmp_path_factory.mktemp("model"))


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    if DEVICE != "cuda":
        monkeypatch.setenv("VALORA_BIN_DIR", str(EMULATED))


def asked(words, vocabulary=0):
    return {"messages": [{"role": "user", "content": "a red circle " * words}],
            "sampling": SAMPLING | ({"max_tokens": 1, "logprobs": vocabulary} if vocabulary else {})}


def requests_of(vocabulary=0):
    """Prompts alone and after a prefix that is in the cache by then: the second ones begin like the first ones."""
    return [asked(words, vocabulary) for words in (1, 4, 12, 30, 13, 55, 56, 57)]


@pytest.mark.parametrize("capture", ["none", "seen", "all"])
def test_error_is_that_of_the_cpu(folder, capture):
    reference = Reference(folder)
    vocabulary = reference.model.config.vocab_size
    distances = []
    for device, kernels in (("cpu", "own"), ("cuda", "flashinfer")):
        environment = {"VALORA_GPU_PREFILL": kernels, "VALORA_GPU_CAPTURE": capture}
        with Engine(folder, environment, dtype="bfloat16", device=device) as engine:
            for _ in range(3):  # steps are captured when they come for the third time
                answers = [*engine.batch(requests_of(vocabulary)), *(engine.one(request) for request in requests_of(vocabulary)[-3:])]
        requests = [*requests_of(vocabulary), *requests_of(vocabulary)[-3:]]
        distances.append(sum(distance(reference, request, answer) for request, answer in zip(requests, answers, strict=True)))
    assert 0 < distances[1] <= 1.25 * distances[0], distances


@pytest.mark.skipif(DEVICE == "cuda", reason="counts launches of the emulation")
def test_prompts_take_the_kernels_that_are_asked_for(folder, tmp_path):
    """The parts of keys are merged by a launch of their own, of which our kernel needs none."""
    launches, answers = {}, {}
    for kernels in ("own", "flashinfer"):
        report = tmp_path / kernels
        environment = {"VALORA_GPU_PREFILL": kernels, "VALORA_GPU_CAPTURE": "none", "VALORA_EMULATED_GPU_REPORT": str(report)}
        with Engine(folder, environment, dtype="bfloat16", device="cuda", prefix_caching=False) as engine:
            answers[kernels] = token_ids(engine.one(asked(60)))
        launches[kernels] = json.loads(report.read_text())["launches"]
    assert launches["flashinfer"] > launches["own"]
    assert len(answers["own"]) == len(answers["flashinfer"])


def test_other_names_are_refused(folder):
    with pytest.raises(EngineError, match="VALORA_GPU_PREFILL.*own or flashinfer"):
        Engine(folder, {"VALORA_GPU_PREFILL": "theirs"}, dtype="bfloat16", device="cuda")
