"""The references of Qwen 2 to 3.5, with their towers."""

import functools
import json
import pathlib

import numpy as np
import tokenizers
import torch
import transformers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

import pictures
import tokenizer_parity
from family import Family, media_of, parts_of
from releases import (
    NEWEST,
    Qwen3Patches,
    QwenPatches,
    QwenPixels,
    mend_positions,
    sample_frames,
)


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
