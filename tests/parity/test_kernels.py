"""The kernels of every instruction set, and ATen in place of them, must give the tokens and distributions of transformers in
fp32."""

import pytest

import checkpoints
from programs import Engine, EngineError
from reference import expect_same
from test_generate_base import TEXT, VISUAL, greedy, vocab

NAMES = ["llama2-biased", "vl-grouped-tied", "vl25-windows", "llava-default"]  # one per family
KERNELS = {isa: {"environment": {"VALORA_ISA": isa}} for isa in ("avx512bf16", "avx512", "avx2", "portable")}
KERNELS["reference"] = {"kernels": "reference"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_every_kernel_choice_equals_reference(models, references, kernels, name):
    messages = {"long": TEXT["long"], "turns": TEXT["multi-turn"]}
    if checkpoints.family(name).has_images:
        messages["interleaved"] = VISUAL["interleaved"]
    sampling = greedy(name, 24) | {"logprobs": vocab(models, name)}
    try:
        engine = Engine(models[name], **KERNELS[kernels])
    except EngineError as error:
        if "this CPU does not have it" not in str(error):
            raise
        pytest.skip(str(error))
    with engine:
        for content in messages.values():
            request = {"messages": content, "sampling": sampling}
            expect_same(references[name], request, engine.one(request))


def test_unknown_kernels_are_refused(models):
    with pytest.raises(EngineError, match='--kernels "fast" is unknown; use native or reference'):
        Engine(models[NAMES[0]], kernels="fast")
