"""Tokenizers, chat formats, processors and special tokens of the model families' references.

A family's functions take the parts of the tests' messages: strings, {"image": url} and {"video":
url}.
"""

import base64
import functools
import json
import pathlib
import re
import types
import unicodedata

import numpy as np
import PIL.Image
import tiktoken
import tokenizers
import torch
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

import llama_tokenizers
import pictures
import qwen1_reference
import tokenizer_parity
from releases import (
    NEWEST,
    CanvasPixels,
    ClipPixels,
    Gemma3Pixels,
    NextPixels,
    OnevisionPixels,
    PixtralPixels,
    Qwen3Patches,
    QwenPatches,
    QwenPixels,
    TilePixels,
    internvl_prompt,
    mend_places,
    mend_positions,
    mend_videos,
    onevision_prompt,
    sample_frames,
    smolvlm_frames,
    smolvlm_video_text,
)


def parts_of(message):
    return message["content"] if isinstance(message["content"], list) else [message["content"]]


def media_of(messages):
    return [part for message in messages for part in parts_of(message) if not isinstance(part, str)]


class Family:
    """A text-only family, and the base class of the vision-language families."""

    has_images = has_video = False
    media_tokens = ()  # a random model may generate these, and the reference would take them for media in the prompt

    def save(self, model, folder):
        """Saves everything except the model: all files with the newest release, otherwise only the
        required ones."""
        if NEWEST:
            self.processor(model.config).save_pretrained(folder)
            return
        self.tokenizer().save(str(folder / "tokenizer.json"))
        if self.has_images:
            self.image_processor(model.config).save_pretrained(folder)

    def mend(self, model):
        """Corrects deviations of this release of the reference from how the models were trained."""

    bos = None

    def fast_tokenizer(self):
        own = tokenizers.Tokenizer.from_str(self.tokenizer().to_str())  # a copy, because transformers changes it
        return transformers.PreTrainedTokenizerFast(tokenizer_object=own, bos_token=self.bos, eos_token=self.eos)

    def processor(self, config):
        """The newest release's processor, with all its parts."""
        return self.fast_tokenizer()

    def token_types(self, ids):
        """Inputs that the newest release needs in addition to the ids."""
        return {}

    def length_inputs(self, prompt):
        """Inputs that make one pass over prompt and answer equal to a pass over the prompt followed by one per answer token."""
        return {}

    def special_id(self, name):
        return self.tokenizer().token_to_id(name)

    def no_media_tokens(self):
        """A logit_bias that suppresses the media tokens."""
        return [[self.special_id(token), -1e4] for token in self.media_tokens]

    def chat_ids(self, messages, add_generation_prompt):
        return self.tokenizer().encode(self.render(messages, add_generation_prompt), add_special_tokens=False).ids

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        """(ids with expanded placeholders, inputs of the vision tower); fps: of videos, if not the model's default."""
        assert processor is None and not media_of(messages)
        return self.chat_ids(messages, add_generation_prompt), {}


class Qwen(Family):
    """Qwen2, Qwen2-VL and Qwen2.5-VL."""

    media_tokens = ("<|vision_start|>", "<|image_pad|>", "<|video_pad|>")

    def __init__(self, kind, visual=False):
        self.kind = kind
        self.has_images = self.has_video = visual

    def mend(self, model):
        if self.has_video:
            mend_positions(model.model)

    @staticmethod
    @functools.cache
    def tokenizer():
        """A small byte-level BPE with Qwen2's special tokens."""
        made = tokenizers.Tokenizer(models.BPE(continuing_subword_prefix="", end_of_word_suffix=""))
        made.normalizer = normalizers.NFC()
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(tokenizer_parity.QWEN2_WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
        made.decoder = decoders.ByteLevel()
        tokenizer_parity.train(made, 290)
        made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in tokenizer_parity.QWEN2_SPECIAL])
        return made

    eos = "<|im_end|>"

    def render(self, messages, add_generation_prompt=True):
        turns = [] if messages[0]["role"] == "system" else [("system", "You are a helpful assistant.")]
        for message in messages:
            turns.append((message["role"], "".join(
                part if isinstance(part, str) else
                f"<|vision_start|><|{'image' if 'image' in part else 'video'}_pad|><|vision_end|>" for part in parts_of(message))))
        text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
        return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")

    def image_settings(self, config):
        vision = config.vision_config
        factor = vision.patch_size * vision.spatial_merge_size
        return dict(patch_size=vision.patch_size, merge_size=vision.spatial_merge_size,
                    temporal_patch_size=vision.temporal_patch_size, min_pixels=4 * factor**2, max_pixels=24 * factor**2)

    def image_processor(self, config):
        return QwenPixels(**self.image_settings(config))

    def processor(self, config):
        if not self.has_images:
            return self.fast_tokenizer()
        kind = {transformers.Qwen2VLForConditionalGeneration: transformers.Qwen2VLProcessor,
                transformers.Qwen2_5_VLForConditionalGeneration: transformers.Qwen2_5_VLProcessor}[self.kind]
        settings = self.image_settings(config)
        return kind(transformers.Qwen2VLImageProcessor(**settings), self.fast_tokenizer(),
                    transformers.Qwen2VLVideoProcessor(**settings))

    def load_processor(self, folder):
        return QwenPatches.of_folder(folder)

    def token_types(self, ids):
        if not NEWEST or not self.has_images:
            return {}
        pads = [self.special_id("<|image_pad|>"), self.special_id("<|video_pad|>")]
        return {"mm_token_type_ids": (ids == pads[0]).int() + 2 * (ids == pads[1]).int()}

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        rows, grids, seconds = {"image": [], "video": []}, {"image": [], "video": []}, []
        expanded, rest = [], media_of(messages)
        pads = {self.special_id("<|image_pad|>"): "image", self.special_id("<|video_pad|>"): "video"}
        for token in self.chat_ids(messages, add_generation_prompt):
            if token not in pads:
                expanded.append(token)
                continue
            part, kind = rest.pop(0), pads[token]
            if kind == "image":
                patches, grid = processor.of_image(pictures.decode(part[kind])[0])
            else:
                frames, rate = self.sampled(part[kind], part.get("sample_fps", fps or 2.0))  # 2.0: the default of the 4.57 processor
                patches, grid = processor.of_video(frames)
                seconds.append(processor.temporal_patch_size / rate)
            rows[kind].append(patches)
            grids[kind].append(grid)
            expanded += [token] * (int(np.prod(grid)) // processor.merge_size**2)
        inputs = {}
        for kind, pixels in (("image", "pixel_values"), ("video", "pixel_values_videos")):
            if rows[kind]:
                inputs[pixels] = torch.tensor(np.concatenate(rows[kind]), dtype=torch.float32)
                inputs[f"{kind}_grid_thw"] = torch.tensor(grids[kind])
        if rows["video"] and self.kind is transformers.Qwen2_5_VLForConditionalGeneration:
            inputs["second_per_grid_ts"] = torch.tensor(seconds)  # fp32, as in the model's processor
        return expanded, inputs

    @staticmethod
    def sampled(url, fps):
        """(the frames kept of a video, their number per second)."""
        frames = pictures.decode(url)
        if not pictures.is_film(url):
            return frames, fps
        rate = pictures.rate_of(url)
        kept = sample_frames(len(frames), rate, fps=fps)
        return [frames[i] for i in kept], len(kept) / len(frames) * rate


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


class Qwen3(Qwen):
    """Text only; no default system prompt, and earlier answers lose their thoughts."""

    def render(self, messages, add_generation_prompt=True):
        assert messages[-1]["role"] == "user"
        text = "".join(f"<|im_start|>{m['role']}\n{''.join(parts_of(m)).split('</think>')[-1]}<|im_end|>\n" for m in messages)
        return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")


class Qwen3VL(Qwen):
    """No default system prompt; a video becomes text with a timestamp and a block per temporal
    patch."""

    def __init__(self, kind=transformers.Qwen3VLForConditionalGeneration):
        super().__init__(kind, visual=True)

    def mend(self, model):
        pass

    def render(self, messages, add_generation_prompt=True):
        text = super().render([{"role": "system", "content": ""}, *messages], add_generation_prompt)
        return text.removeprefix("<|im_start|>system\n<|im_end|>\n")

    def image_settings(self, config):
        return super().image_settings(config) | dict(image_mean=[0.5] * 3, image_std=[0.4] * 3)

    def video_settings(self, config):
        """Limits the pixels of all frames together, within the range of the tests' videos."""
        settings = self.image_settings(config)
        size = {"shortest_edge": 4 * settings.pop("min_pixels"), "longest_edge": 2 * settings.pop("max_pixels")}
        return settings | dict(size=size, video_processor_type="Qwen3VLVideoProcessor")

    def save(self, model, folder):
        super().save(model, folder)
        if not NEWEST:
            (folder / "video_preprocessor_config.json").write_text(json.dumps(self.video_settings(model.config)))

    def processor(self, config):
        video = self.video_settings(config)
        video.pop("video_processor_type")
        return transformers.Qwen3VLProcessor(transformers.Qwen2VLImageProcessor(**self.image_settings(config)), self.fast_tokenizer(),
                                             transformers.Qwen3VLVideoProcessor(**video))

    def load_processor(self, folder):
        return Qwen3Patches.of_folder(pathlib.Path(folder))

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        text, inputs = self.render(messages, add_generation_prompt), {}
        rows, grids = {"image": [], "video": []}, {"image": [], "video": []}
        for part in media_of(messages):
            kind = "image" if "image" in part else "video"
            placeholder = f"<|{kind}_pad|>"
            if kind == "image":
                patches, grid = processor.of_image(pictures.decode(part[kind])[0])
                block = "[pad]" * (int(np.prod(grid)) // processor.merge_size**2)
            else:
                frames, times = self.frames_and_times(part, fps, processor)
                patches, grid = processor.of_video(frames)
                pads = "[pad]" * (int(np.prod(grid[1:])) // processor.merge_size**2)
                block = "".join(f"<{time:.1f} seconds><|vision_start|>{pads}<|vision_end|>" for time in times)
                placeholder = f"<|vision_start|>{placeholder}<|vision_end|>"
            text = text.replace(placeholder, block.replace("[pad]", f"[{kind} pad]"), 1)
            rows[kind].append(patches)
            grids[kind].append(grid)
        text = text.replace("[image pad]", "<|image_pad|>").replace("[video pad]", "<|video_pad|>")
        for kind, pixels in (("image", "pixel_values"), ("video", "pixel_values_videos")):
            if rows[kind]:
                inputs[pixels] = torch.tensor(np.concatenate(rows[kind]), dtype=torch.float32)
                inputs[f"{kind}_grid_thw"] = torch.tensor(np.array(grids[kind]))
        return self.tokenizer().encode(text, add_special_tokens=False).ids, inputs

    @staticmethod
    def frames_and_times(part, fps, processor):
        """The frames kept of a video, and the time of each temporal patch."""
        frames = pictures.decode(part["video"])
        if not pictures.is_film(part["video"]):
            return frames, processor.times(range(len(frames)), part.get("sample_fps", fps or 2.0))
        rate = pictures.rate_of(part["video"])
        kept = processor.sampled(len(frames), rate, fps or 2.0)
        return [frames[i] for i in kept], processor.times(kept, rate)


class Qwen35Text(Qwen3):
    """The assistant's turn begins with a thought. Requires release 5 or later."""

    def __init__(self, kind="Qwen3_5ForCausalLM"):
        super().__init__(getattr(transformers, kind, None))

    def render(self, messages, add_generation_prompt=True):
        return super().render(messages, add_generation_prompt) + ("<think>\n" if add_generation_prompt else "")


class Qwen35(Qwen3VL):
    """Like Qwen3-VL, but the assistant's turn begins with a thought. Requires release 5 or
    later."""

    def __init__(self, kind="Qwen3_5ForConditionalGeneration"):
        super().__init__(getattr(transformers, kind, None))

    def render(self, messages, add_generation_prompt=True):
        return super().render(messages, add_generation_prompt) + ("<think>\n" if add_generation_prompt else "")


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


class Idefics3(Family):
    """Ids and pixels come from Idefics3Processor itself. Its tokenizer only has tokens for image borders, like
    Idefics3-8B's."""

    kind = transformers.Idefics3ForConditionalGeneration
    has_images = True
    media_tokens = ("<image>",)
    bos, eos = "<|begin_of_text|>", "<end_of_utterance>"
    opening = bos
    specials = [bos, "<|end_of_text|>", "<fake_token_around_image>", "<image>", eos]
    settings = dict(size={"longest_edge": 60}, max_image_size={"longest_edge": 30}, resample=3, image_mean=[0.4, 0.5, 0.6])

    @classmethod
    @functools.cache
    def tokenizer(cls):
        """A small byte-level BPE that splits numbers into digits, like SmolLM2's."""
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        made.decoder = decoders.ByteLevel()
        tokenizer_parity.train(made, 290)
        made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in cls.specials])
        if cls.bos:
            made.post_processor = processors.TemplateProcessing(
                single=f"{cls.bos} $A", special_tokens=[(cls.bos, made.token_to_id(cls.bos))])
        return made

    def mend(self, model):
        mend_places(model.model.vision_model.embeddings)

    def render(self, messages, add_generation_prompt=True):
        text = self.opening
        for message in messages:
            parts = ["<image>" if not isinstance(part, str) else part for part in parts_of(message)]
            text += message["role"].capitalize() + (":" if parts[0] == "<image>" else ": ") + "".join(parts) + "<end_of_utterance>\n"
        return text + ("Assistant:" if add_generation_prompt else "")

    def image_processor(self, config):
        return TilePixels(**self.settings)

    def processor(self, config):
        return self.processor_with(self.image_processor(config), config)

    def load_processor(self, folder):
        return self.processor_with(TilePixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config):
        side = images.max_image_size["longest_edge"] // config.vision_config.patch_size // config.scale_factor
        return transformers.Idefics3Processor(images, self.fast_tokenizer(), image_seq_len=side**2)

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        images = [image for part in media_of(messages) for image in pictures.decode(part["image"])]
        text = self.render(messages, add_generation_prompt)
        made = processor(text=text, images=[images] if images else None, return_tensors="pt", add_special_tokens=False)
        inputs = {key: made[key] for key in ("pixel_values", "pixel_attention_mask")} if images else {}
        return made["input_ids"][0].tolist(), inputs


class SmolVLM(Idefics3):
    """Has tokens for tile positions. Prompts are those of Idefics3, because SmolVLM's own processor requires a package that spells
    out frame counts."""

    kind = transformers.SmolVLMForConditionalGeneration
    bos, eos = None, "<end_of_utterance>"
    opening = "<|im_start|>"
    specials = ["<|im_start|>", "<fake_token_around_image>", "<image>", eos, "<global-img>",
                *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2))]
    settings = dict(size={"longest_edge": 64}, max_image_size={"longest_edge": 32}, image_std=[0.4] * 3)

    def video_prompt(self, before, part, behind, processor, **sampling):
        """The prompt of one video between two texts, as in prompt(). Frames are resized with PIL."""
        frames = pictures.decode(part["video"])
        if pictures.is_film(part["video"]):
            metadata = smolvlm_frames(len(frames), pictures.rate_of(part["video"]), **sampling)
        else:
            metadata = types.SimpleNamespace(fps=24, duration=None, frames_indices=range(len(frames)),
                                             timestamps=[i / 24 for i in range(len(frames))])
        pixels = processor.image_processor([[frames[i] for i in metadata.frames_indices]], do_image_splitting=False, return_tensors="pt")
        text = f"<|im_start|>User: {before}{smolvlm_video_text(metadata, processor.image_seq_len)}{behind}<end_of_utterance>\nAssistant:"
        return self.tokenizer().encode(text, add_special_tokens=False).ids, {
            key: pixels[key] for key in ("pixel_values", "pixel_attention_mask")}


class InternVL(Qwen):
    """Ids and pixels come from InternVLProcessor itself."""

    kind = transformers.InternVLForConditionalGeneration
    has_images = has_video = True
    media_tokens = ("<IMG_CONTEXT>",)
    specials = {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>"}

    def __init__(self):
        pass

    def mend(self, model):
        pass

    def token_types(self, ids):
        return {}

    @classmethod
    @functools.cache
    def tokenizer(cls):
        made = tokenizers.Tokenizer.from_str(Qwen.tokenizer().to_str())
        made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in cls.specials.values()])
        return made

    def fast_tokenizer(self):
        own = tokenizers.Tokenizer.from_str(self.tokenizer().to_str())
        return transformers.PreTrainedTokenizerFast(tokenizer_object=own, eos_token=self.eos, extra_special_tokens=self.specials)

    def render(self, messages, add_generation_prompt=True):
        text = "".join(f"<|im_start|>{m['role']}\n" + "".join(
            part if isinstance(part, str) else "<IMG_CONTEXT>\n" if "image" in part else "<video>\n" for part in parts_of(m)
        ) + "<|im_end|>\n" for m in messages)
        return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")

    def image_settings(self, config):
        """A tile is as large as the tower's pictures, except with Qwen3, where positions are interpolated."""
        side, patch = config.vision_config.image_size[0], config.vision_config.patch_size[0]
        side += patch * (config.text_config.model_type == "qwen3")
        return dict(size={"height": side, "width": side}, max_patches=5, image_mean=[0.485, 0.456, 0.406], image_std=[0.3] * 3)

    def image_processor(self, config):
        return CanvasPixels(**self.image_settings(config))

    def processor(self, config):
        settings = self.image_settings(config)
        settings.pop("max_patches")
        return self.processor_with(self.image_processor(config), config, transformers.InternVLVideoProcessor(**settings))

    def load_processor(self, folder):
        return self.processor_with(CanvasPixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config, videos=None):
        side = int(images.size["height"] // config.vision_config.patch_size[0] * config.downsample_ratio)
        if not videos:  # its class requires a video processor, which 4.57 lacks
            made = types.SimpleNamespace(
                image_processor=images, image_seq_length=side**2, start_image_token="<img>", end_image_token="</img>",
                image_token="<IMG_CONTEXT>", video_token="<video>",
                multimodal_pattern=re.compile("(?P<image><IMG_CONTEXT>)|(?P<video><video>)"))
            for name in ("_insert_media_placeholders", "replace_image_token", "replace_video_token"):
                if hasattr(transformers.InternVLProcessor, name):
                    setattr(made, name, getattr(transformers.InternVLProcessor, name).__get__(made))
            return made
        return transformers.InternVLProcessor(images, self.fast_tokenizer(), videos, image_seq_length=side**2)

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        media = media_of(messages)
        text, pixels = internvl_prompt(processor, self.render(messages, add_generation_prompt),
                                       [pictures.decode(part["image"])[0] for part in media if "image" in part],
                                       [pictures.decode(part["video"]) for part in media if "video" in part])
        return self.tokenizer().encode(text, add_special_tokens=False).ids, {"pixel_values": pixels} if media else {}


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
        if self is MISTRAL3:  # which takes the embedding of a one-token picture for its list of tokens
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


class LlavaOnevision(Qwen):
    """Ids and pixels come from LlavaOnevisionProcessor itself."""

    kind = transformers.LlavaOnevisionForConditionalGeneration
    has_images = has_video = True
    media_tokens = ("<image>", "<video>")

    def __init__(self):
        pass

    def mend(self, model):
        mend_videos(model.model)

    def token_types(self, ids):
        return {}

    @classmethod
    @functools.cache
    def tokenizer(cls):
        made = tokenizers.Tokenizer.from_str(Qwen.tokenizer().to_str())
        made.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in cls.media_tokens])
        return made

    def render(self, messages, add_generation_prompt=True):
        text = super().render([m | {"content": [part if isinstance(part, str) else f"<{next(iter(part))}>\n" for part in parts_of(m)]}
                               for m in messages], add_generation_prompt)
        return text

    def image_settings(self, config):
        side = config.vision_config.image_size
        return dict(size={"height": side, "width": side}, image_mean=[0.5, 0.45, 0.4])

    def image_processor(self, config):
        return OnevisionPixels(**self.image_settings(config), image_grid_pinpoints=config.image_grid_pinpoints)

    def processor(self, config):
        return self.processor_with(self.image_processor(config), config,
                                   transformers.LlavaOnevisionVideoProcessor(**self.image_settings(config)))

    def load_processor(self, folder):
        return self.processor_with(OnevisionPixels.from_pretrained(folder), transformers.AutoConfig.from_pretrained(folder))

    def processor_with(self, images, config, videos=None):
        side = config.vision_config.image_size // config.vision_config.patch_size
        settings = dict(num_image_tokens=side**2, vision_feature_select_strategy="full", vision_aspect_ratio=config.vision_aspect_ratio)
        if videos:
            return transformers.LlavaOnevisionProcessor(images, self.fast_tokenizer(), videos, **settings)
        # its class requires a video processor, which 4.57 lacks
        made = types.SimpleNamespace(image_processor=images, image_token="<image>", video_token="<video>", **settings)
        for name in ("_expand_image_tokens", "_get_number_of_features", "_get_unpadded_features", "replace_image_token", "replace_video_token"):
            if hasattr(transformers.LlavaOnevisionProcessor, name):
                setattr(made, name, getattr(transformers.LlavaOnevisionProcessor, name).__get__(made))
        return made

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        media = media_of(messages)
        text, inputs = onevision_prompt(processor, self.render(messages, add_generation_prompt),
                                        [pictures.decode(part["image"])[0] for part in media if "image" in part],
                                        [pictures.decode(part["video"]) for part in media if "video" in part])
        return self.tokenizer().encode(text, add_special_tokens=False).ids, inputs


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


class TiktokenTokenizer:
    """tiktoken as used by QWenTokenizer, with the interface of `tokenizers`."""

    def __init__(self, ranks, visual):
        special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]
        special += ["<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<img>", "</img>", "<imgpad>"] if visual else []
        self.ranks, self.special = ranks, {text: len(ranks) + i for i, text in enumerate(special)}
        self.encoding = tiktoken.Encoding("qwen", pat_str=tokenizer_parity.QWEN2_WORDS, mergeable_ranks=ranks, special_tokens=self.special)

    def encode(self, text, allowed=None, **_):
        allowed = set(self.special) if allowed is None else allowed
        return types.SimpleNamespace(ids=self.encoding.encode(unicodedata.normalize("NFC", text), allowed_special=allowed, disallowed_special=()))

    def decode(self, ids):
        return self.encoding.decode(ids)

    def token_to_id(self, token):
        return self.special.get(token)

    def get_vocab_size(self):
        return len(self.ranks) + len(self.special)


@functools.cache
def qwen1_tokenizer(visual):
    """The vocabulary of the other Qwen tokenizer, as ranks."""
    vocabulary = sorted((id, token) for token, id in Qwen.tokenizer().get_vocab(with_added_tokens=False).items())
    byte_of = {character: byte for byte, character in tokenizer_parity.byte_characters().items()}
    return TiktokenTokenizer({bytes(byte_of[c] for c in token): rank for rank, (_, token) in enumerate(vocabulary)}, visual)


class Qwen1(Family):
    """Qwen and Qwen-VL: produces the same ids as the code in their folders."""

    kind = qwen1_reference.QWenLMHeadModel
    eos = "<|im_end|>"
    tags = {"<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<img>", "</img>", "<imgpad>"}

    def __init__(self, visual):
        self.has_images = visual
        self.media_tokens = ("<img>", "</img>", "<imgpad>") if visual else ()

    def tokenizer(self):
        return qwen1_tokenizer(self.has_images)

    def save(self, model, folder):
        ranks = self.tokenizer().ranks
        (folder / "qwen.tiktoken").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        (folder / "tokenizer_config.json").write_text(json.dumps({
            "model_max_length": 8192, "tokenizer_class": "QWenTokenizer", "auto_map": {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]}}))
        (folder / "generation_config.json").write_text(json.dumps({
            "chat_format": "chatml", "do_sample": True, "eos_token_id": self.special_id("<|endoftext|>"), "max_new_tokens": 512,
            "max_window_size": 6144, "pad_token_id": self.special_id("<|endoftext|>"), "top_k": 0, "top_p": 0.3}))

    def chat_ids(self, messages, add_generation_prompt):
        """Contents are encoded separately from the text around them, and pictures are numbered throughout the
        conversation."""
        tokenizer, pictures_before, ids = self.tokenizer(), 0, []
        allowed = self.tags if self.has_images else set()
        turns = [] if messages[0]["role"] == "system" else [{"role": "system", "content": "You are a helpful assistant."}]
        for i, message in enumerate([*turns, *messages]):
            content = ""
            for part in parts_of(message):
                pictures_before += not isinstance(part, str)
                content += part if isinstance(part, str) else f"Picture {pictures_before}: <img>picture.png</img>\n"
            ids += tokenizer.encode("\n").ids * (i > 0) + [self.special_id("<|im_start|>")] + tokenizer.encode(message["role"] + "\n").ids
            ids += tokenizer.encode(content, allowed=allowed).ids + [self.special_id("<|im_end|>")]
        ids += tokenizer.encode("\n").ids
        return ids + ([self.special_id("<|im_start|>")] + tokenizer.encode("assistant\n").ids if add_generation_prompt else [])

    def load_processor(self, folder):
        return transformers.AutoConfig.from_pretrained(folder).visual

    def prompt(self, messages, add_generation_prompt, processor, fps=None):
        """The paths between the tags have no effect, because embeddings of pictures take their
        place."""
        ids, expanded, within = self.chat_ids(messages, add_generation_prompt), [], False
        for id in ids:
            if id == self.token_id("</img>"):
                expanded += [self.token_id("<imgpad>")] * processor["n_queries"]
                within = False
            if not within:
                expanded.append(id)
            within = within or id == self.token_id("<img>")
        pixels = [square_pixels(image, processor["image_size"]) for part in media_of(messages) for image in pictures.decode(part["image"])]
        return expanded, {"pixel_values": torch.stack(pixels)} if pixels else {}

    def length_inputs(self, prompt):
        return {"prompt_length": len(prompt)}

    def token_id(self, token):
        return self.special_id(token) if self.has_images else None


def square_pixels(image, side):
    """Processes a PIL picture like torchvision's Resize, ToTensor and Normalize."""
    pixels = torch.from_numpy(np.array(image.convert("RGB").resize((side, side), PIL.Image.Resampling.BICUBIC))).permute(2, 0, 1).float() / 255
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    return (pixels - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


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
