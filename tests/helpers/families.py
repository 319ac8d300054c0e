"""Tokenizers, chat formats, processors and special tokens of the model families' references: one object per family."""

import transformers

from gemma_families import Gemma3, Gemma3Text
from llama_families import Llama2, Llama3, Llava, LlavaNext, Mistral, Pixtral
from qwen1_family import Qwen1
from qwen_families import Qwen, Qwen3, Qwen3VL, Qwen35, Qwen35Text
from tile_families import Idefics3, InternVL, LlavaOnevision, SmolVLM

QWEN1, QWEN1_VL = Qwen1(False), Qwen1(True)
QWEN2, QWEN2_VL = Qwen(transformers.Qwen2ForCausalLM), Qwen(transformers.Qwen2VLForConditionalGeneration, visual=True)
QWEN2_5_VL = Qwen(transformers.Qwen2_5_VLForConditionalGeneration, visual=True)
LLAMA2, LLAMA3, LLAVA, MISTRAL = Llama2(), Llama3(), Llava(), Mistral()
QWEN3, QWEN3_VL = Qwen3(transformers.Qwen3ForCausalLM), Qwen3VL()
QWEN3_MOE, QWEN3_VL_MOE = Qwen3(transformers.Qwen3MoeForCausalLM), Qwen3VL(transformers.Qwen3VLMoeForConditionalGeneration)
QWEN35_TEXT, QWEN35 = Qwen35Text(), Qwen35()
QWEN35_MOE_TEXT, QWEN35_MOE = Qwen35Text("Qwen3_5MoeForCausalLM"), Qwen35("Qwen3_5MoeForConditionalGeneration")
IDEFICS3, SMOLVLM, INTERNVL = Idefics3(), SmolVLM(), InternVL()
GEMMA3_TEXT, GEMMA3 = Gemma3Text(), Gemma3()
PIXTRAL, MISTRAL3 = Pixtral(transformers.LlavaForConditionalGeneration), Pixtral(transformers.Mistral3ForConditionalGeneration)
LLAVA_NEXT, LLAVA_ONEVISION = {decoder: LlavaNext(decoder) for decoder in ("llama", "mistral", "qwen2")}, LlavaOnevision()

# By the model_type of config.json. Each type that valora serves is here (test_config_keys.py).
BY_TYPE = {
    "llama": LLAMA3, "llava": LLAVA, "mistral": MISTRAL, "mistral3": MISTRAL3, "qwen2": QWEN2, "qwen2_vl": QWEN2_VL,
    "qwen2_5_vl": QWEN2_5_VL, "qwen3": QWEN3, "qwen3_vl": QWEN3_VL, "qwen3_moe": QWEN3_MOE, "qwen3_vl_moe": QWEN3_VL_MOE,
    "idefics3": IDEFICS3, "smolvlm": SMOLVLM, "internvl": INTERNVL, "internvl_chat": INTERNVL, "llava_next": LLAVA_NEXT["llama"],
    "llava_onevision": LLAVA_ONEVISION, "gemma3_text": GEMMA3_TEXT, "gemma3": GEMMA3, "qwen": QWEN1,
    "qwen3_5_text": QWEN35_TEXT, "qwen3_5": QWEN35, "qwen3_5_moe_text": QWEN35_MOE_TEXT, "qwen3_5_moe": QWEN35_MOE}


def family_of(config):
    """The family of a checkpoint, determined from its configuration."""
    kind = type(config).model_type  # instances of composite configurations return the type of their text part
    if kind == "llama" and config.eos_token_id != LLAMA3.special_id(LLAMA3.eos):
        return LLAMA2
    if kind == "llava" and config.vision_config.model_type == "pixtral":
        return PIXTRAL
    if kind == "qwen" and config.visual:
        return QWEN1_VL
    if kind == "llava_next":
        return LLAVA_NEXT[config.text_config.model_type]
    return BY_TYPE[kind]
