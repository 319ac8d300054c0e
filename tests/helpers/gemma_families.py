"""The references of Gemma 3."""

import functools

import tokenizers
import transformers

import llama_tokenizers
import pictures
from family import Family, media_of, parts_of
from releases import (
    Gemma3Pixels,
)


class Gemma3Text(Family):
    """The language model of Gemma 3 alone."""

    kind = transformers.Gemma3ForCausalLM
    bos, eos = "<bos>", "<end_of_turn>"

    @staticmethod
    @functools.cache
    def tokenizer():
        return llama_tokenizers.gemma()

    def render(self, messages, add_generation_prompt=True):
        system = ""
        if messages[0]["role"] == "system":
            system = "".join(parts_of(messages[0])) + "\n\n"
            messages = messages[1:]
        text = "<bos>"
        for i, message in enumerate(messages):
            content = "".join(part.strip() if isinstance(part, str) else "<start_of_image>" for part in parts_of(message))
            role = "model" if message["role"] == "assistant" else message["role"]
            text += f"<start_of_turn>{role}\n{system if i == 0 else ''}{content}<end_of_turn>\n"
        return text + ("<start_of_turn>model\n" if add_generation_prompt else "")


class Gemma3(Gemma3Text):
    """Ids and pixels come from Gemma3Processor itself."""

    kind = transformers.Gemma3ForConditionalGeneration
    has_images = True
    media_tokens = ("<image_soft_token>",)

    def token_types(self, ids):
        return {"token_type_ids": (ids == self.special_id("<image_soft_token>")).int()}

    def fast_tokenizer(self):
        own = tokenizers.Tokenizer.from_str(self.tokenizer().to_str())
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=own, bos_token=self.bos, eos_token=self.eos,
            extra_special_tokens={"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"})

    def image_processor(self, config):
        side = config.vision_config.image_size
        return Gemma3Pixels(size={"height": side, "width": side}, image_mean=[0.4, 0.5, 0.6])

    def processor(self, config):
        return self.processor_with(self.image_processor(config), config)

    def load_processor(self, folder):
        return self.processor_with(Gemma3Pixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config):
        return transformers.Gemma3Processor(images, self.fast_tokenizer(), image_seq_length=config.mm_tokens_per_image)

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        images = [image for part in media_of(messages) for image in pictures.decode(part["image"])]
        made = processor(text=self.render(messages, add_generation_prompt), images=[images] if images else None,
                         add_special_tokens=False, return_tensors="pt")
        return made["input_ids"][0].tolist(), {"pixel_values": made["pixel_values"]} if images else {}
