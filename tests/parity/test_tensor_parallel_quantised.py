"""Ranks with integer weights: the parts of a linear have the same values as the whole, even if a boundary splits a
group."""

import pytest

import test_quantised
from checkpoints import save_adapter, save_model
from programs import DEVICE, Engine
from reference import Reference, expect_same
from rounded_weights import decoded_model
from test_quantised import (
    CASES,
    IN_EVERY_MODE,
    ROUNDED,
    distances,
    expect_rounded,
    first_rows,
    short_requests,
)
from wide import pairs, sample

pytestmark = pytest.mark.skipif(DEVICE == "cuda", reason="served on CPUs only")

RANKS = {"text-grouped-tied": 2, "text-one-layer": 5, "vl-grouped-tied": 6, "vl3-grouped-tied": 2, "vl-small-patch": 5}


@pytest.fixture(scope="module")
def cases(models, tmp_path_factory):
    made = {}

    def case(name):
        if name not in made:
            made[name] = test_quantised.Case(name, models, tmp_path_factory.mktemp(name))
        return made[name]
    return case


@pytest.mark.parametrize("name, mode", sample([(name, "unmerged") for name in CASES] + [
    (name, mode) for name in IN_EVERY_MODE for mode in ("merged", "mixture")], 8))
def test_quantised_folders_on_ranks_equal_reference(cases, name, mode):
    cases(name).expect_same(mode=mode, tensor_parallel_size=RANKS[CASES[name][0]])


def test_fp8_is_restored_in_place(cases):
    cases("fp8").expect_same(mode="mixture", merge="inplace", tensor_parallel_size=2)


@pytest.mark.parametrize("bits, mode", pairs([4, 8], ["unmerged", "mixture"]))
def test_weights_quantised_at_startup_equal_reference(models, tmp_path, bits, mode):
    model = models.memory["text-grouped-tied"]
    reference = Reference(save_model(decoded_model(model, bits), tmp_path / "decoded"))
    adapter = save_adapter(model, tmp_path / "a", 950, rank=8)
    reference.load_adapter("a", adapter)
    sampling = {"max_tokens": 16, "ignore_eos": True, "temperature": 0, "logprobs": model.config.vocab_size}
    requests = [{"messages": test_quantised.TEXT, "sampling": sampling, "adapters": [{"name": "a"}] * (i % 2)} for i in range(4)]
    with Engine(models["text-grouped-tied"], quantization=f"int{bits}", mode=mode, tensor_parallel_size=2) as engine:
        engine.load("a", adapter)
        for request, answer in zip(requests, engine.batch(requests), strict=True):
            expect_same(reference, request, answer, tolerance=1e-3)


@pytest.mark.parametrize("name", ROUNDED)
def test_inputs_are_rounded_with_a_common_scale(cases, models, name):
    case, model = cases(name), ROUNDED[name][0]
    requests = short_requests(case.reference, models.memory[model].config.vocab_size, case.adapters)
    rows, unrounded = (first_rows(folder, requests, case.adapters, tensor_parallel_size=RANKS[model]) for folder in (case.folder, case.plain))
    expect_rounded(case.reference, requests, rows, unrounded)


@pytest.mark.parametrize("bits", [4, 8])
def test_activation_rounding_error_is_that_of_a_single_rank(models, tmp_path, bits):
    """Input blocks are shorter where the boundary of a rank splits one."""
    name = "text-grouped-tied"
    reference = Reference(save_model(decoded_model(models.memory[name], bits), tmp_path / "decoded"))
    requests = short_requests(reference, models.memory[name].config.vocab_size, {})
    whole, parts, exact = (sum(distances(reference, requests, first_rows(models[name], requests, {}, quantization=f"int{bits}", **options)))
                           for options in ({"activations": "int8"}, {"activations": "int8", "tensor_parallel_size": 2}, {}))
    assert 10 * exact < parts < 1.25 * whole, (exact, parts, whole)
