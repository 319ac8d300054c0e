"""The references that cut pictures into tiles: Idefics3, SmolVLM, InternVL and LLaVA-OneVision."""

import functools
import re
import types

import tokenizers
import transformers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, processors

import pictures
import tokenizer_parity
from family import Family, media_of, parts_of
from qwen_families import Qwen
from releases import (
    CanvasPixels,
    OnevisionPixels,
    TilePixels,
    internvl_prompt,
    mend_places,
    mend_videos,
    onevision_prompt,
    smolvlm_frames,
    smolvlm_video_text,
)


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
