"""Settings of content parts against qwen_vl_utils: the frames it takes from a video file, their rate, and its sizes."""

import importlib.util
import math
import random
import sys
import types

import numpy as np
import pytest
import torch
from PIL import Image

from media_probe import encoded, picture

FACTOR = 28
VIDEO = {"min_pixels": 128 * FACTOR**2, "max_pixels": 768 * FACTOR**2}  # qwen_vl_utils' defaults
IMAGE = {"min_pixels": 4 * FACTOR**2, "max_pixels": 16384 * FACTOR**2}


class Frames:
    """A tensor of frames that only has a shape: real ones would take gigabytes."""

    def __init__(self, shape):
        self.shape = shape

    def permute(self, *order):
        return Frames([self.shape[i] for i in order])

    def float(self):
        return self


class Reader:
    """A video with the interface of decord's reader."""

    shape = (100, 25.0, 64, 48)  # frames, rate, width, height

    def __init__(self, path):
        self.frames, self.rate, self.width, self.height = self.shape

    def __len__(self):
        return self.frames

    def get_avg_fps(self):
        return self.rate

    def get_batch(self, indices):
        self.taken.append(indices)
        return types.SimpleNamespace(asnumpy=lambda: (len(indices), self.height, self.width, 3))

    taken = []


class Sizes:
    """torchvision's resize, which only records the size."""

    asked = []

    def resize(self, video, size, **options):
        self.asked.append(size)
        return video


@pytest.fixture(scope="module")
def utils():
    """qwen_vl_utils, with its video reader and resize function replaced."""
    if not importlib.util.find_spec("qwen_vl_utils"):
        pytest.skip("qwen_vl_utils is not installed")
    transforms = types.ModuleType("torchvision.transforms")
    transforms.functional, transforms.InterpolationMode = Sizes(), types.SimpleNamespace(BICUBIC=3)
    torchvision = types.ModuleType("torchvision")
    torchvision.io, torchvision.transforms, torchvision.__version__ = types.ModuleType("torchvision.io"), transforms, "0.20.0"
    decord = types.ModuleType("decord")
    decord.VideoReader = Reader
    replaced = {"torchvision": torchvision, "torchvision.transforms": transforms, "decord": decord}
    with pytest.MonkeyPatch.context() as patch:
        for name, module in replaced.items():
            patch.setitem(sys.modules, name, module)
        patch.delitem(sys.modules, "qwen_vl_utils.vision_process", raising=False)
        from qwen_vl_utils import vision_process
        patch.setattr(vision_process, "torch", types.SimpleNamespace(linspace=torch.linspace, tensor=Frames))
        patch.setattr(vision_process, "FORCE_QWENVL_VIDEO_READER", "decord")
        # If decord cannot read a file, it tries torchvision next; the first error is the one to
        # compare.
        patch.setitem(vision_process.VIDEO_READER_BACKENDS, "torchvision", vision_process.VIDEO_READER_BACKENDS["decord"])
        yield vision_process


def expected(utils, shape, settings):
    """Indices, rate and tokens; None if qwen_vl_utils refuses."""
    Reader.shape, Reader.taken, Sizes.asked = shape, [], []
    try:
        _, rate = utils.fetch_video({"video": "film.mp4"} | settings, return_video_sample_fps=True)
    except (ValueError, AssertionError):
        return None
    (indices,), ((height, width),) = Reader.taken, Sizes.asked
    return indices, rate, len(indices) // 2 * (height // FACTOR) * (width // FACTOR)


def settings_of(rng):
    """Random settings of a video part, possibly impossible ones."""
    every = {"fps": lambda: rng.choice([0.5, 1, 2, 3.7, 24]), "nframes": lambda: rng.randint(1, 60),
             "min_frames": lambda: rng.randint(1, 40), "max_frames": lambda: rng.randint(2, 60),
             "video_start": lambda: rng.uniform(-1, 20), "video_end": lambda: rng.uniform(0, 40),
             "min_pixels": lambda: rng.randint(128, 200) * FACTOR**2, "max_pixels": lambda: rng.randint(150, 768) * FACTOR**2 + 5,
             "total_pixels": lambda: rng.randint(1, 20000) * FACTOR**2}
    settings = {key: draw() for key, draw in every.items() if rng.random() < 0.3}
    if rng.random() < 0.2:
        settings |= {"resized_height": rng.randint(1, 500), "resized_width": rng.randint(1, 500)}
    return settings


def test_video_sampling_equals_qwen_vl_utils(probe, utils):
    rng, refused = random.Random(5), 0
    for number in range(1500):
        shape = (rng.randint(1, 1200), rng.choice([1, 10, 23.976, 25, 29.97, 60]), rng.randint(2, 900), rng.randint(2, 900))
        settings = settings_of(rng)
        theirs = expected(utils, shape, settings)
        ours = probe.ask(op="sample", frames=shape[0], fps=shape[1], width=shape[2], height=shape[3], video_config=VIDEO,
                         overrides={"kind": "video", "rule": "span"} | settings)
        if theirs is None:
            refused += 1
            assert "error" in ours, (number, shape, settings, ours)
            continue
        assert "error" not in ours, (number, shape, settings, ours)
        assert ours["indices"] == theirs[0], (number, shape, settings)
        assert math.isclose(ours["rate"], theirs[1]), (number, shape, settings)
        # Without total_pixels, qwen_vl_utils applies its own limit from some 300 frames on; valora applies the
        # model's.
        if "total_pixels" in settings or len(theirs[0]) <= 200:
            assert ours["tokens"] == theirs[2], (number, shape, settings)
    assert 100 < refused < 900


def test_image_sizes_equal_qwen_vl_utils(probe, utils):
    rng = random.Random(6)
    for number in range(60):
        width, height = rng.randint(3, 700), rng.randint(3, 700)
        settings = {"min_pixels": rng.randint(1, 60) * FACTOR**2} if number % 2 else {}
        settings |= {"max_pixels": rng.randint(60, 400) * FACTOR**2 + 3} if number % 3 else {}
        if number % 5 == 0:
            settings |= {"resized_height": rng.randint(1, 900), "resized_width": rng.randint(1, 900)}
        if max(width, height) > 200 * min(width, height) or not settings:
            continue
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = utils.fetch_image({"image": Image.fromarray(picture(width, height))} | settings)
        answer, ours = probe.process(op="process_image", path=probe.file(data),
                                     config=IMAGE | {"do_rescale": False, "do_normalize": False},
                                     overrides={"kind": "image"} | settings)
        assert "error" not in answer, (settings, answer)
        assert answer["grid"] == [1, theirs.height // 14, theirs.width // 14], (width, height, settings)
        blocks = np.asarray(theirs).reshape(theirs.height // 28, 2, 14, theirs.width // 28, 2, 14, 3)
        rows = blocks.transpose(0, 3, 1, 4, 6, 2, 5).reshape(-1, 3, 1, 14 * 14)
        assert np.array_equal(ours, np.repeat(rows, 2, axis=2).reshape(len(rows), -1))


def test_frame_sampling_equals_vllms_loader(probe):
    """numpy.linspace over the whole video; the smaller of the two counts applies."""
    rng = random.Random(7)
    for _ in range(500):
        frames, fps = rng.randint(1, 3000), rng.choice([1, 10, 23.976, 25, 29.97, 60])
        most, rate = rng.choice([None, rng.randint(1, 600)]), rng.choice([None, rng.uniform(0.01, 60)])
        kept = max(1, min(most or frames, frames, math.floor(frames / fps * rate) if rate else frames))
        asked = {key: value for key, value in {"num_frames": most, "fps": rate}.items() if value}
        ours = probe.ask(op="sample", frames=frames, fps=fps, overrides={"kind": "video", "rule": "uniform"} | asked)
        assert ours["indices"] == np.linspace(0, frames - 1, kept, dtype=int).tolist(), (frames, fps, asked)
        assert math.isclose(ours["rate"], kept / frames * fps)
