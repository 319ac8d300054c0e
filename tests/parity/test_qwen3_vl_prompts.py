"""The form of a video in a prompt of Qwen3-VL: what transformers' own processor makes of it, beside the tests' reference."""

import types

import numpy as np
import pytest
import transformers

import families
from releases import NEWEST

TEXT = "<|im_start|>user\n<|vision_start|><|video_pad|><|vision_end|>what?<|im_end|>\n"
FRAMES = "".join(f"<{time} seconds><|vision_start|>{'<|video_pad|>' * 4}<|vision_end|>" for time in ("0.2", "1.2"))


class FourFrames:
    """A video processor's answer for four frames at 2 per second, without torchvision."""

    merge_size = temporal_patch_size = 2

    def __call__(self, videos, **_):
        metadata = types.SimpleNamespace(fps=2.0, frames_indices=[0, 1, 2, 3])
        return {"video_grid_thw": np.array([[2, 4, 4]]), "video_metadata": [metadata]}


def processor():
    tokenizer = families.QWEN3_VL.fast_tokenizer()
    made = transformers.Qwen3VLProcessor.__new__(transformers.Qwen3VLProcessor)
    made.tokenizer, made.image_processor, made.video_processor = tokenizer, None, FourFrames()
    for name in ("image", "video"):
        setattr(made, f"{name}_token", f"<|{name}_pad|>")
        setattr(made, f"{name}_token_id", tokenizer.convert_tokens_to_ids(f"<|{name}_pad|>"))
    for name in ("start", "end"):
        setattr(made, f"vision_{name}_token", f"<|vision_{name}|>")
    return made


@pytest.mark.skipif(NEWEST, reason="the form of the model makers is that of 4.57")
def test_frames_replace_the_marks_around_a_video():
    made = processor()
    ids = made(text=[TEXT], videos=[object()])["input_ids"][0]
    expected = TEXT.replace("<|vision_start|><|video_pad|><|vision_end|>", FRAMES)
    assert ids == families.QWEN3_VL.tokenizer().encode(expected, add_special_tokens=False).ids


@pytest.mark.skipif(not NEWEST, reason="releases from 5.18 on")
def test_newer_releases_replace_the_video_alone():
    """So the marks around it stay, two tokens more. Once this fails, docs/rooms/references.md has a sentence too many."""
    made = processor()
    assert made.replace_video_token(made.video_processor([object()]), 0) == FRAMES
