"""Differences between the transformers releases that the tests compare with: the one in .venv, and 5 in .venv-newest.

Since 5, processors resize with torchvision by default, which differs from PIL by one level in some pixels; the references
here use the processors that resize with PIL, as valora does. Folders are saved completely, as processors save them.
"""

import ast
import functools
import json
import math
import pathlib
import types
import typing

import numpy as np
import torch
import transformers
from PIL import Image

NEWEST = int(transformers.__version__.split(".")[0]) >= 5

if NEWEST:
    import visual_backend  # noqa: F401, I001  must precede the processors
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil as ClipPixels
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil as Gemma3Pixels
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil as CanvasPixels
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil as TilePixels
    from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil as NextPixels
    from transformers.models.llava_onevision.image_processing_pil_llava_onevision import LlavaOnevisionImageProcessorPil as OnevisionPixels
    from transformers.models.pixtral.image_processing_pil_pixtral import PixtralImageProcessorPil as PixtralPixels
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil as QwenPixels
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize
    from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil as SmolTilePixels
else:
    from transformers import CLIPImageProcessor as ClipPixels  # noqa: F401
    from transformers import Gemma3ImageProcessor as Gemma3Pixels  # noqa: F401
    from transformers import GotOcr2ImageProcessor as CanvasPixels  # noqa: F401
    from transformers import Idefics3ImageProcessor as TilePixels  # noqa: F401
    from transformers import LlavaNextImageProcessor as NextPixels  # noqa: F401
    from transformers import LlavaOnevisionImageProcessor as OnevisionPixels  # noqa: F401
    from transformers import PixtralImageProcessor as PixtralPixels  # noqa: F401
    from transformers import SmolVLMImageProcessor as SmolTilePixels  # noqa: F401
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import (
        Qwen2VLImageProcessor as QwenPixels,
    )


class QwenPatches:
    """Patches of pictures and videos."""

    def __init__(self, images, videos):
        self.images, self.videos = images, videos
        self.merge_size, self.temporal_patch_size = images.merge_size, images.temporal_patch_size

    @classmethod
    def of_folder(cls, folder):
        images = QwenPixels.from_pretrained(folder)
        return cls(images, transformers.Qwen2VLVideoProcessor.from_pretrained(folder) if NEWEST else images)

    @classmethod
    def with_settings(cls, **settings):
        images = QwenPixels(**settings)
        return cls(images, transformers.Qwen2VLVideoProcessor(**settings) if NEWEST else images)

    def of_image(self, picture):
        if not NEWEST:
            return self.older(self.images, [picture])
        made = self.images(images=[picture], return_tensors="np")
        return made["pixel_values"], made["image_grid_thw"][0].tolist()

    def of_video(self, frames):
        if not NEWEST:
            return self.older(self.videos, frames)
        p = self.videos
        height, width = smart_resize(frames[0].height, frames[0].width, p.patch_size * p.merge_size,
                                     p.size["shortest_edge"], p.size["longest_edge"])
        resized = np.stack([np.asarray(frame.resize((width, height), Image.Resampling.BICUBIC)) for frame in frames])
        made = p(videos=[resized], do_sample_frames=False, input_data_format="channels_last", return_tensors="pt")
        return made["pixel_values_videos"].numpy(), made["video_grid_thw"][0].tolist()

    @staticmethod
    def older(p, frames):
        return p._preprocess(frames, do_resize=True, size=p.size, resample=p.resample, do_rescale=True,
                             rescale_factor=p.rescale_factor, do_normalize=True, image_mean=p.image_mean,
                             image_std=p.image_std, patch_size=p.patch_size, temporal_patch_size=p.temporal_patch_size,
                             merge_size=p.merge_size, do_convert_rgb=True)


class Qwen3Patches(QwenPatches):
    """Patches of Qwen3-VL, whose videos have a separate processor in all releases."""

    @classmethod
    def of_folder(cls, folder):
        one = folder / ("processor_config.json" if NEWEST else "video_preprocessor_config.json")
        settings = json.loads(one.read_text())
        return cls(QwenPixels.from_pretrained(folder), settings.get("video_processor", settings))

    def of_video(self, frames):
        patch, merge, temporal = (self.videos[key] for key in ("patch_size", "merge_size", "temporal_patch_size"))
        height, width = qwen3_vl_videos("smart_resize")(
            num_frames=len(frames), height=frames[0].height, width=frames[0].width, temporal_factor=temporal, factor=patch * merge,
            min_pixels=self.videos["size"]["shortest_edge"], max_pixels=self.videos["size"]["longest_edge"])
        resized = [frame.resize((width, height), Image.Resampling.BICUBIC) for frame in frames]
        if not NEWEST:
            p = self.images
            return p._preprocess(resized, do_resize=False, do_rescale=True, rescale_factor=p.rescale_factor, do_normalize=True,
                                 image_mean=self.videos["image_mean"], image_std=self.videos["image_std"], patch_size=patch,
                                 temporal_patch_size=temporal, merge_size=merge)
        p = transformers.Qwen3VLVideoProcessor(**{k: v for k, v in self.videos.items() if not k.endswith("_type")})
        made = p(videos=[np.stack([np.asarray(frame) for frame in resized])], do_sample_frames=False, do_resize=False,
                 input_data_format="channels_last", return_tensors="pt")
        return made["pixel_values_videos"].numpy(), made["video_grid_thw"][0].tolist()

    @staticmethod
    def sampled(frames, rate, fps):
        """The frames that the processor keeps of a file."""
        processor = types.SimpleNamespace(fps=fps, min_frames=4, max_frames=768)
        return qwen3_vl_videos("Qwen3VLVideoProcessor", "sample_frames")(
            processor, types.SimpleNamespace(total_num_frames=frames, fps=rate)).tolist()

    @staticmethod
    def times(kept, rate):
        """The time of each temporal patch, computed by the text processor."""
        return transformers.Qwen3VLProcessor._calculate_timestamps(None, list(kept), rate, 2)


@functools.cache
def qwen3_vl_videos(name, method=None):
    """A function of Qwen3-VL's video processor, extracted from the source for the reason given in
    frame_sampler()."""
    path = pathlib.Path(transformers.__file__).parent / "models/qwen3_vl/video_processing_qwen3_vl.py"
    found = next(n for n in ast.parse(path.read_text()).body if getattr(n, "name", "") == name)
    if method:
        found = next(n for n in found.body if getattr(n, "name", "") == method)
    names = {"math": math, "np": np, "Optional": typing.Optional, "Union": typing.Union, "VideoMetadata": object}
    exec(compile(ast.Module([found], []), str(path), "exec"), names)
    return names[method or name]


def sample_frames(frames, rate, **settings):
    """The frames that Qwen2VLVideoProcessor keeps out of `frames`, at `rate` per second."""
    defaults = {"num_frames": None, "fps": None if "num_frames" in settings else 2.0, "temporal_patch_size": 2,
                "min_frames": 4, "max_frames": 768}
    processor = types.SimpleNamespace(**(defaults | settings))
    kept = frame_sampler()(processor, types.SimpleNamespace(total_num_frames=frames, fps=rate)).tolist()
    return [i for i in kept if i < frames]  # the floating-point step may yield one index too many, past the end


@functools.cache
def frame_sampler():
    """Qwen2VLVideoProcessor.sample_frames. Its module requires torchvision, which only its resize
    uses, so the method is extracted from the source."""
    path = pathlib.Path(transformers.__file__).parent / "models/qwen2_vl/video_processing_qwen2_vl.py"
    processor = next(n for n in ast.parse(path.read_text()).body if getattr(n, "name", "") == "Qwen2VLVideoProcessor")
    method = next(n for n in processor.body if getattr(n, "name", "") == "sample_frames")
    names = {"math": math, "torch": torch, "Optional": typing.Optional, "Union": typing.Union, "VideoMetadata": object}
    exec(compile(ast.Module([method], []), str(path), "exec"), names)
    return names["sample_frames"]


def mend_positions(model):
    """Gives the tokens of a video, and those after it, the positions used in training, which each release gets wrong
    in a different way (docs/rooms/references.md). `model` is a Qwen2VLModel or Qwen2_5_VLModel."""
    mend = behind_the_largest if NEWEST else in_fractions_of_a_second
    model.get_rope_index = mend(model.get_rope_index, model.config)


def behind_the_largest(rope_index, _):
    """transformers 5 continues after the largest side of a video's frames, even if its time is already beyond
    that."""
    def mended(input_ids, mm_token_type_ids, **inputs):
        made, _ = rope_index(input_ids, mm_token_type_ids, **inputs)
        assert len(made[0]) == 1  # one prompt at a time
        for begin in mm_token_type_ids[0].diff().nonzero().flatten() + 1:  # boundaries between text and media
            made[..., begin:] += made[..., :begin].max() + 1 - made[0, 0, begin]
        return made, (made.max() + 1 - made.shape[-1]).reshape(1, 1)
    return mended


def in_fractions_of_a_second(rope_index, config):
    """transformers 4.57 rounds down a video's seconds per temporal patch before multiplying them by the positions
    per second. Here it computes positions for one second per patch, whose times are then replaced."""
    def mended(input_ids, *grids, second_per_grid_ts=None, **inputs):
        if second_per_grid_ts is None:
            return rope_index(input_ids, *grids, **inputs)
        made, _ = rope_index(input_ids, *grids, second_per_grid_ts=torch.ones_like(second_per_grid_ts), **inputs)
        assert len(made[0]) == 1  # one prompt at a time
        per_second, video = config.vision_config.tokens_per_second, (input_ids[0] == config.video_token_id).int()
        edges = video.diff(prepend=video.new_zeros(1), append=video.new_zeros(1)).nonzero().flatten().tolist()
        for seconds, begin, end in zip(second_per_grid_ts, edges[::2], edges[1::2], strict=True):
            times, first, largest = made[0, 0, begin:end], made[1, 0, begin], made[..., begin:end].max()
            times.copy_(first + ((times - first) // per_second * (per_second * seconds)).long())
            made[..., end:] += made[..., begin:end].max() - largest
        return made, (made.max() + 1 - made.shape[-1]).reshape(1, 1)
    return mended


def smolvlm_frames(frames, rate, **settings):
    """The frames that SmolVLM's video processor keeps, and their metadata. Unavailable in 4.57 here, whose class requires torchvision."""
    from transformers.video_utils import VideoMetadata
    made = VideoMetadata(total_num_frames=frames, fps=rate, duration=frames / rate)
    made.frames_indices = transformers.SmolVLMVideoProcessor.sample_frames(types.SimpleNamespace(**settings), made)
    return made


def smolvlm_video_text(metadata, image_seq_len):
    """The text that SmolVLM's own processor puts in place of <video>; that processor requires a package that spells
    out numbers."""
    from transformers.models.smolvlm import processing_smolvlm
    words = {1: "one", 3: "three", 4: "four", 21: "twenty-one"}
    count, processing_smolvlm.num2words = len(metadata.frames_indices), words.__getitem__
    processor = types.SimpleNamespace(image_seq_len=image_seq_len, fake_image_token="<fake_token_around_image>", image_token="<image>",
                                      global_image_token="<global-img>")
    inputs = {"pixel_values": np.zeros((1, count)), "video_metadata": [metadata]}
    return processing_smolvlm.SmolVLMProcessor.replace_video_token(processor, inputs, 0)


def internvl_prompt(processor, text, images, videos):
    """(text, pixels) from InternVLProcessor's own functions. Each video is a list of frames, processed like pictures that are not
    cut: its video processor requires torchvision in 4.57, and resizes with it."""
    made = processor.image_processor(images=images, crop_to_patches=True, return_tensors="pt") if images else {}
    frames = [processor.image_processor(images=video, crop_to_patches=False, return_tensors="pt")["pixel_values"] for video in videos]
    counts = [int(count) for count in made.get("num_patches", [])]
    if not NEWEST:
        text, pixels, *_ = processor._insert_media_placeholders(
            [text], made.get("pixel_values"), torch.cat(frames) if frames else None, counts, [1] * sum(map(len, frames)), np.cumsum(counts),
            np.arange(sum(map(len, frames)) + 1), np.cumsum([0, *map(len, frames)]))
        return text[0], torch.cat(pixels) if pixels else None
    rest, pixels = list(made.get("pixel_values", torch.zeros(0)).split(counts)) if images else [], []

    def replaced(match):
        if match.lastgroup == "image":
            index = len(counts) - len(rest)
            pixels.append(rest.pop(0))
            return processor.replace_image_token(made, index)
        index = sum(1 for one in pixels if any(one is video for video in frames))
        pixels.append(frames[index])
        return processor.replace_video_token({"pixel_values_videos": frames}, index)
    text = processor.multimodal_pattern.sub(replaced, text)
    return text, torch.cat(pixels) if pixels else None


def internvl_frames(frames, rate, **settings):
    """The frames that InternVL's video processor keeps. Its class requires torchvision in 4.57, so the method is extracted from the
    source."""
    path = pathlib.Path(transformers.__file__).parent / "models/internvl/video_processing_internvl.py"
    processor = next(n for n in ast.parse(path.read_text()).body if getattr(n, "name", "") == "InternVLVideoProcessor")
    method = next(n for n in processor.body if getattr(n, "name", "") == "sample_frames")
    names = {"torch": torch, "Optional": typing.Optional, "Union": typing.Union, "VideoMetadata": object}
    exec(compile(ast.Module([method], []), str(path), "exec"), names)
    own = types.SimpleNamespace(num_frames=settings.get("num_frames"), initial_shift=settings.get("initial_shift", True))
    return names["sample_frames"](own, types.SimpleNamespace(total_num_frames=frames, fps=rate), fps=settings.get("fps")).tolist()


def onevision_prompt(processor, text, images, videos):
    """(text, inputs) from LlavaOnevisionProcessor's own functions. Each video is a list of frames, processed like whole pictures:
    its video processor requires torchvision in 4.57, and resizes with it."""
    inputs = {}
    if images:
        made = processor.image_processor([images], return_tensors="pt")
        inputs = {key: torch.as_tensor(made[key]) for key in ("pixel_values", "image_sizes", "batch_num_images")}
        if NEWEST:
            for i in range(len(images)):
                text = text.replace("<image>", processor.replace_image_token(made, i).replace("<image>", "[image]"), 1)
            text = text.replace("[image]", "<image>")
        else:
            side = processor.image_processor.size["height"]
            (text,), _ = processor._expand_image_tokens([text], iter(made["image_sizes"]), side, side, "<image>",
                                                        iter(made["batch_num_images"]))
    frames = [torch.cat([processor.image_processor(frame, return_tensors="pt")["pixel_values"][0, :1] for frame in video])
              for video in videos]
    for video in frames:
        if NEWEST:
            expanded = processor.replace_video_token({"pixel_values_videos": [video]}, 0)
        else:  # as in its __call__
            expanded = "<video>" * (len(video) * math.ceil(int(math.sqrt(processor.num_image_tokens)) / 2) ** 2 + 1)
        text = text.replace("<video>", expanded.replace("<video>", "[video]"), 1)
    if videos:
        inputs["pixel_values_videos"] = [video[None] for video in frames]
    return text.replace("[video]", "<video>"), inputs


def mend_videos(model):
    """Lets a LlavaOnevisionModel accept a list of videos of different lengths, each handled like a
    single one."""
    own = model.get_video_features

    def mended(pixel_values_videos, **more):
        made = [own(video, **more) for video in pixel_values_videos]
        if not NEWEST:  # release 5 itself adds the newline after the last one
            ends = [model.image_newline[None, None]] * (len(made) - 1)
            return torch.cat([part for pair in zip(made, ends) for part in pair] + made[-1:], 1)
        made[0].pooler_output = torch.cat([one.pooler_output for one in made], 1)
        return made[0]
    model.get_video_features = mended


def even_frames(frames, rate, **settings):
    """The frames kept by video processors without their own sampling, computed by transformers 5."""
    from transformers.video_utils import VideoMetadata, default_sample_indices_fn
    return default_sample_indices_fn(VideoMetadata(total_num_frames=frames, fps=rate), **settings).tolist()


def mend_places(embeddings):
    """Gives the patches of a tile the positions of transformers 5: 4.57 shrinks the fractions that it looks up, so that in fp32
    all but the first patch of a side get the preceding position (docs/rooms/references.md). Tiles have no padding."""
    def mended(pixel_values, patch_attention_mask):
        assert patch_attention_mask.all()
        side = embeddings.num_patches_per_side
        places = []
        for count in patch_attention_mask.shape[1:]:
            fractions = (torch.arange(count, dtype=torch.float32) * (1.0 / torch.tensor(count))).clamp(max=1.0 - 1e-6)
            places.append(torch.bucketize(fractions, torch.arange(1 / side, 1.0, 1 / side), right=True))
        ids = (places[0][:, None] * side + places[1]).flatten()
        patches = embeddings.patch_embedding(pixel_values).flatten(2).transpose(1, 2)
        return patches + embeddings.position_embedding(ids)
    if not NEWEST:
        embeddings.forward = mended
