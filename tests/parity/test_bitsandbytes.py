"""Folders that transformers and bitsandbytes write on a CPU must give the answers of the weights that bitsandbytes decodes."""

import pytest
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, Qwen2ForCausalLM

import quantised
from adapted_case import AdaptedCase
from checkpoints import qwen2, randomise, save_adapter, save_model
from reference import Reference

bitsandbytes = pytest.importorskip("bitsandbytes", reason="bitsandbytes is installed beside the newest transformers alone")
from bitsandbytes.functional import dequantize_4bit, int8_vectorwise_dequant  # noqa: E402

CASES = {
    "int8": dict(load_in_8bit=True),
    "nf4": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float32),
    "fp4": dict(load_in_4bit=True, bnb_4bit_quant_type="fp4", bnb_4bit_compute_dtype=torch.float32),
}
ADAPTERS = [dict(rank=3), dict(rank=8, targets="all-linear", exclude_modules=["lm_head"])]
USES = [[], [(0, 1)], [(1, 1)], [(1, 0.5)], [(0, 1), (1, -1)], [(1, 1)], []]


def decoded(model):
    """The weights of the quantised linears, by the names of their tensors."""
    weights = {}
    for name, module in model.named_modules():
        if isinstance(module, bitsandbytes.nn.Linear8bitLt):
            weights[f"{name}.weight"] = int8_vectorwise_dequant(module.weight.data, module.weight.SCB).float()
        elif isinstance(module, bitsandbytes.nn.Linear4bit):
            weights[f"{name}.weight"] = dequantize_4bit(module.weight.data, module.weight.quant_state).float()
    return weights


class Case(AdaptedCase):
    def __init__(self, root, **options):
        # Whole blocks of 64 inputs: the CPU kernel of bitsandbytes decodes blocks wrongly that span two outputs.
        memory = randomise(Qwen2ForCausalLM(qwen2(64, 4, 2, 2, 128, False)), 27)
        self.folder, plain = (save_model(memory, root / part) for part in ("quantised", "decoded"))
        model = AutoModelForCausalLM.from_pretrained(plain, quantization_config=BitsAndBytesConfig(**options), device_map="cpu",
                                                     dtype=torch.float32)
        (self.folder / "model.safetensors").unlink()
        model.save_pretrained(self.folder)
        quantised.with_decoded(plain, decoded(model))
        self.reference = Reference(plain)
        self.adapters = {f"a{i}": save_adapter(memory, root / f"a{i}", 700 + i, **config) for i, config in enumerate(ADAPTERS)}
        for adapter, path in self.adapters.items():
            self.reference.load_adapter(adapter, path)
        sampling = {"max_tokens": 12, "ignore_eos": True, "temperature": 0, "logprobs": memory.config.vocab_size}
        self.requests = [{"messages": [{"role": "user", "content": "What is in this picture?"}], "sampling": sampling,
                          "adapters": [{"name": f"a{a}", "scale": scale} for a, scale in uses]} for uses in USES]


@pytest.mark.parametrize("name", CASES)
def test_written_folder_equals_its_decoded_weights(tmp_path, name):
    case = Case(tmp_path, **CASES[name])
    case.expect_same()
    case.expect_same(mode="mixture")
