"""The references of Llama and Mistral, LLaVA, LLaVA-NeXT and Pixtral."""

import functools

import tokenizers
import torch
import transformers
from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors

import llama_tokenizers
import pictures
import tokenizer_parity
from family import Family, media_of, parts_of
from releases import (
    ClipPixels,
    NextPixels,
    PixtralPixels,
)


class Llama3(Family):
    kind = transformers.LlamaForCausalLM
    bos, eos = "<|begin_of_text|>", "<|eot_id|>"
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]

    @staticmethod
    @functools.cache
    def tokenizer():
        made = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(tokenizer_parity.LLAMA3_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        made.decoder = decoders.ByteLevel()
        tokenizer_parity.train(made, 290)
        made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in Llama3.specials])
        bos = made.token_to_id(Llama3.specials[0])
        made.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", bos)])])
        return made

    def render(self, messages, add_generation_prompt=True):
        def header(role):
            return f"<|start_header_id|>{role}<|end_header_id|>\n\n"
        text = "<|begin_of_text|>" + "".join(
            header(m["role"]) + "".join(parts_of(m)).strip() + "<|eot_id|>" for m in messages)
        return text + (header("assistant") if add_generation_prompt else "")


class Llama2(Family):
    kind = transformers.LlamaForCausalLM
    bos, eos = "<s>", "</s>"

    @staticmethod
    @functools.cache
    def tokenizer():
        return llama_tokenizers.with_normalizer()

    def render(self, messages, add_generation_prompt=True):
        text = system = ""
        if messages[0]["role"] == "system":
            system = f"<<SYS>>\n{parts_of(messages[0])[0].strip()}\n<</SYS>>\n\n"
            messages = messages[1:]
        for message in messages:
            content = "".join(parts_of(message)).strip()
            if message["role"] == "user":
                text += f"<s>[INST] {system}{content} [/INST]"
                system = ""
            else:
                text += f" {content} </s>"
        return text


class Mistral(Llama2):
    """Writes [INST] as text."""

    kind = transformers.MistralForCausalLM

    def render(self, messages, add_generation_prompt=True):
        text, system = "<s>", ""
        for message in messages:
            content = "".join(parts_of(message))
            if message["role"] == "system":
                system = content + "\n\n"
            elif message["role"] == "user":
                text += f" [INST] {system}{content} [/INST]"
                system = ""
            else:
                text += f" {content}</s>"
        return text


class Llava(Family):
    """LLaVA-1.5; ids and pixels come from LlavaProcessor itself."""

    kind = transformers.LlavaForConditionalGeneration
    has_images = True
    media_tokens = ("<image>",)
    bos, eos = "<s>", "</s>"
    tokenizer = staticmethod(Llama2.tokenizer)

    def render(self, messages, add_generation_prompt=True):
        text = ""
        for message in messages:
            if message["role"] != "system":
                text += message["role"].upper() + ": "
            text += "".join("<image>\n" for part in parts_of(message) if not isinstance(part, str))
            text += "".join(part + " " for part in parts_of(message) if isinstance(part, str))
        return text + ("ASSISTANT:" if add_generation_prompt else "")

    def image_settings(self, config):
        side = config.vision_config.image_size
        return dict(size={"shortest_edge": side}, crop_size={"height": side, "width": side})

    def image_processor(self, config):
        return ClipPixels(**self.image_settings(config))

    def processor(self, config):
        return self.processor_with(transformers.CLIPImageProcessor(**self.image_settings(config)), config)

    def load_processor(self, folder):
        return self.processor_with(ClipPixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config):
        return transformers.LlavaProcessor(
            images, self.fast_tokenizer(), patch_size=config.vision_config.patch_size, num_additional_image_tokens=1,
            vision_feature_select_strategy=config.vision_feature_select_strategy)

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        images = [image for part in media_of(messages) for image in pictures.decode(part["image"])]
        made = processor(text=self.render(messages, add_generation_prompt), images=images or None, return_tensors="pt")
        inputs = {"pixel_values": made["pixel_values"]} if images else {}
        return made["input_ids"][0].tolist(), inputs


class LlavaNext(Llava):
    """Ids and pixels come from LlavaNextProcessor itself. The chat format is that of the decoder's published
    folders."""

    kind = transformers.LlavaNextForConditionalGeneration

    def __init__(self, decoder):
        self.decoder = decoder

    def render(self, messages, add_generation_prompt=True):
        if self.decoder == "llama":
            return super().render(messages, add_generation_prompt)
        text, system = "<s>" if self.decoder == "mistral" else "", ""
        for message in messages:
            content = "".join(part if isinstance(part, str) else "<image>\n" for part in parts_of(message))
            if self.decoder == "qwen2":
                text += f"<|im_start|>{message['role']}\n{content}<|im_end|>\n"
            elif message["role"] == "system":
                system = content + "\n\n"
            elif message["role"] == "user":
                text += f" [INST] {system}{content} [/INST]"
                system = ""
            else:
                text += f" {content}</s>"
        return text + ("<|im_start|>assistant\n" if self.decoder == "qwen2" and add_generation_prompt else "")

    def image_settings(self, config):
        return super().image_settings(config) | dict(image_grid_pinpoints=config.image_grid_pinpoints, image_mean=[0.4, 0.5, 0.6])

    def image_processor(self, config):
        return NextPixels(**self.image_settings(config))

    def processor(self, config):
        return self.processor_with(self.image_processor(config), config)

    def load_processor(self, folder):
        return self.processor_with(NextPixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config):
        strategy = config.vision_feature_select_strategy
        return transformers.LlavaNextProcessor(
            images, self.fast_tokenizer(), patch_size=config.vision_config.patch_size, num_additional_image_tokens=int(strategy == "default"),
            vision_feature_select_strategy=strategy)

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        images = [image for part in media_of(messages) for image in pictures.decode(part["image"])]
        text = self.render(messages, add_generation_prompt)
        made = processor(text=text, images=images or None, return_tensors="pt", add_special_tokens=not text.startswith(self.bos))
        inputs = {key: made[key] for key in ("pixel_values", "image_sizes")} if images else {}
        return made["input_ids"][0].tolist(), inputs


class Pixtral(Mistral):
    """Pixtral (LLaVA with its tower) and Mistral 3; ids and pixels come from PixtralProcessor
    itself."""

    has_images = True
    media_tokens = ("[IMG]",)
    specials = ["[IMG]", "[IMG_BREAK]", "[IMG_END]"]

    def __init__(self, kind):
        self.kind = kind

    @staticmethod
    @functools.cache
    def tokenizer():
        made = tokenizers.Tokenizer.from_str(Llama2.tokenizer().to_str())
        made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in Pixtral.specials])
        return made

    def render(self, messages, add_generation_prompt=True):
        return super().render([m | {"content": [part if isinstance(part, str) else "[IMG]" for part in parts_of(m)]} for m in messages],
                              add_generation_prompt)

    def mend(self, model):
        # 4.57 requires the caller to convert pixels to the model's dtype
        model.model.vision_tower.patch_conv.register_forward_pre_hook(lambda conv, inputs: inputs[0].to(conv.weight.dtype))
        if self.kind is transformers.Mistral3ForConditionalGeneration:  # which takes the embedding of a one-token picture for its list of tokens
            model.model.multi_modal_projector.register_forward_hook(lambda *call: call[-1][None])

    def image_settings(self, config):
        """Larger than a block, and smaller than the tower's range of positions."""
        return dict(size={"longest_edge": config.vision_config.image_size - 3}, image_mean=[0.4, 0.5, 0.6])

    def image_processor(self, config):
        return PixtralPixels(**self.image_settings(config))

    def processor(self, config):
        return self.processor_with(self.image_processor(config), config)

    def load_processor(self, folder):
        return self.processor_with(PixtralPixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config):
        return transformers.PixtralProcessor(images, self.fast_tokenizer(), patch_size=config.vision_config.patch_size,
                                             spatial_merge_size=getattr(config, "spatial_merge_size", 1))

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        images = [image for part in media_of(messages) for image in pictures.decode(part["image"])]
        made = processor(text=self.render(messages, add_generation_prompt), images=images or None, add_special_tokens=False,
                         return_tensors="pt")
        inputs = {"pixel_values": made["pixel_values"], "image_sizes": torch.as_tensor(made["image_sizes"])} if images else {}
        return made["input_ids"][0].tolist(), inputs
