"""Resized pixels, sizes and patches of src/media against PIL and transformers' processors."""

import io
import itertools
import json
import types

import numpy as np
import pytest
import transformers
from PIL import Image

from media_probe import assert_equal, encoded, picture
from releases import (
    NEWEST,
    CanvasPixels,
    ClipPixels,
    Gemma3Pixels,
    NextPixels,
    OnevisionPixels,
    PixtralPixels,
    QwenPatches,
    QwenPixels,
    SmolTilePixels,
    TilePixels,
    even_frames,
    internvl_frames,
    sample_frames,
    smolvlm_frames,
)


@pytest.mark.parametrize("resample", ["BICUBIC", "LANCZOS", "BILINEAR"])
def test_resize_is_bit_equal(probe, resample):
    rng = np.random.default_rng(7)
    sizes = [(1, 1, 28, 28), (5, 7, 5, 7), (5, 7, 5, 31), (5, 7, 31, 7), (900, 3, 28, 28), (3, 900, 28, 56)]
    sizes += [tuple(int(n) for n in np.exp(rng.uniform(0, 6, 4))) for _ in range(60)]
    for width, height, to_width, to_height in sizes:
        noise = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        # Hard black and white edges cause overshoot that has to be clipped.
        edges = (rng.integers(0, 2, (height, width, 3)) * 255).astype(np.uint8)
        for pixels in (noise, edges):
            theirs = np.array(Image.fromarray(pixels).resize(
                (to_width, to_height), Image.Resampling[resample]))
            assert_equal(probe.resize(pixels, to_width, to_height, filter=resample), theirs)


PROCESSOR_SETTINGS = [
    {},
    {"min_pixels": 4 * 28 * 28, "max_pixels": 64 * 28 * 28},
    {"max_pixels": 50_000},
    {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]},
    {"image_mean": 0.5, "image_std": 0.25, "rescale_factor": 1 / 127.5},
    {"do_normalize": False},
    {"do_rescale": False},
    {"do_rescale": False, "do_normalize": False},
    {"patch_size": 16, "merge_size": 1, "temporal_patch_size": 3},
    {"patch_size": 8, "merge_size": 4, "temporal_patch_size": 1, "max_pixels": 40_000},
]
# The reference would mistake a height of 1 or 3 for channels.
PROCESSOR_SIZES = [(28, 28), (56, 84), (1, 2), (14, 14), (42, 42), (70, 98), (333, 111), (640, 480)]
PROCESSOR_SIZES += [(2000, 10), (7, 1400)]


@pytest.mark.parametrize("settings", PROCESSOR_SETTINGS, ids=lambda s: "-".join(s) or "default")
def test_qwen_processing_equals_transformers(probe, settings):
    processor = QwenPixels(**settings)
    for width, height in PROCESSOR_SIZES:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = processor(images=[Image.open(io.BytesIO(data))], return_tensors="np")
        answer, ours = probe.process(op="process_image", path=probe.file(data), config=settings)
        assert "error" not in answer, answer
        assert answer["grid"] == theirs["image_grid_thw"][0].tolist()
        assert answer["tokens"] == np.prod(answer["grid"]) // processor.merge_size**2
        assert ours.shape == theirs["pixel_values"].shape
        assert np.abs(ours - theirs["pixel_values"]).max() <= 1e-6


def test_saved_processor_settings_are_read(probe, tmp_path):
    """As written by save_pretrained, with values that are not the defaults."""
    processor = QwenPixels(min_pixels=28 * 28 * 6, max_pixels=28 * 28 * 30)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    data = encoded(Image.fromarray(picture(500, 300)), "PNG")
    theirs = processor(images=[Image.open(io.BytesIO(data))], return_tensors="np")
    answer, ours = probe.process(op="process_image", path=probe.file(data), config=config)
    assert answer["grid"] == theirs["image_grid_thw"][0].tolist()
    assert np.abs(ours - theirs["pixel_values"]).max() <= 1e-6


def test_size_is_used_and_max_pixels_overrides_it(probe):
    size = {"shortest_edge": 28 * 28 * 2, "longest_edge": 28 * 28 * 12}
    data = encoded(Image.fromarray(picture(500, 300)), "PNG")
    image = Image.open(io.BytesIO(data))
    path = probe.file(data)
    answer, _ = probe.process(op="process_image", path=path, config={"size": size})
    assert answer["grid"] == QwenPixels()(images=[image], size=size)["image_grid_thw"][0].tolist()
    answer, _ = probe.process(op="process_image", path=path, config={"size": size, "max_pixels": 28 * 28 * 40})
    both = {"shortest_edge": size["shortest_edge"], "longest_edge": 28 * 28 * 40}
    assert answer["grid"] == QwenPixels()(images=[image], size=both)["image_grid_thw"][0].tolist()


def test_unprocessable_images_are_errors(probe):
    thin = probe.file(encoded(Image.fromarray(picture(2010, 10)), "PNG"))
    answer, _ = probe.process(op="process_image", path=thin, config={})
    assert "aspect ratio" in answer["error"]
    odd = probe.file(encoded(Image.fromarray(picture(30, 30)), "PNG"))
    answer, _ = probe.process(op="process_image", path=odd, config={"do_resize": False})
    assert "does not resize" in answer["error"]


@pytest.mark.parametrize("setting", [{"resample": 2}, {"image_std": [1, 0, 1]},
                                     {"sharpen": 3}, {"size": {"height": 3, "width": 3}},
                                     {"image_processor_type": "CLIPImageProcessor"}])
def test_unsupported_settings_are_refused_by_name(probe, setting):
    path = probe.file(encoded(Image.fromarray(picture(30, 30)), "PNG"))
    answer, _ = probe.process(op="process_image", path=path, config=setting)
    assert answer["param"] == next(iter(setting))
    assert next(iter(setting)) in answer["error"]


CLIP_SETTINGS = [
    {},
    {"size": {"shortest_edge": 40}, "crop_size": {"height": 28, "width": 28}},
    {"size": {"shortest_edge": 20}, "crop_size": {"height": 29, "width": 29}},  # padded
    {"size": {"height": 28, "width": 28}, "do_center_crop": False},
    {"size": {"height": 50, "width": 31}, "crop_size": {"height": 28, "width": 28}},
    {"do_resize": False, "crop_size": {"height": 28, "width": 28}},
    {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}, "image_mean": [0.5, 0.4, 0.3], "image_std": 0.25},
    {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}, "do_normalize": False, "rescale_factor": 1 / 127.5},
    {"size": {"shortest_edge": 28}, "crop_size": {"height": 28, "width": 28}, "do_rescale": False, "do_normalize": False},
]


def clip_patches(pixels, patch):
    """[3, h, w] → rows as read by a convolution with stride `patch`."""
    channels, height, width = pixels.shape
    rows = pixels.reshape(channels, height // patch, patch, width // patch, patch)
    return rows.transpose(1, 3, 0, 2, 4).reshape(-1, channels * patch * patch)


@pytest.mark.parametrize("settings", CLIP_SETTINGS, ids=lambda s: "-".join(s) or "default")
def test_clip_processing_equals_transformers(probe, settings, tmp_path):
    """LLaVA's image processor, configured by the file that save_pretrained writes."""
    processor = ClipPixels(**settings)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    for width, height in [(28, 28), (57, 84), (2, 2), (41, 42), (333, 111), (640, 480), (7, 900), (29, 30), (1200, 11)]:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = processor(images=[Image.open(io.BytesIO(data))], return_tensors="np")["pixel_values"][0]
        side = theirs.shape[1]
        patch = 7 if side % 7 == 0 else side
        clip = {"image_size": side, "patch_size": patch, "class_token": width % 2 == 0}
        answer, ours = probe.process(op="process_image", path=probe.file(data), config=config, clip=clip)
        assert "error" not in answer, answer
        assert answer["grid"] == [1, side // patch, side // patch]
        assert answer["tokens"] == (side // patch) ** 2 + clip["class_token"]
        assert np.abs(ours - clip_patches(theirs, patch)).max() <= 1e-6


TILE_SETTINGS = [
    {},
    {"size": {"longest_edge": 200}, "max_image_size": {"longest_edge": 48}},
    {"size": {"longest_edge": 130}, "max_image_size": {"longest_edge": 53}, "image_mean": [0.4, 0.5, 0.6], "image_std": 0.25, "resample": 3},
    {"size": {"height": 100, "width": 61}, "max_image_size": {"longest_edge": 32}, "do_normalize": False},
    {"do_resize": False, "max_image_size": {"longest_edge": 64}, "do_rescale": False},
    {"size": {"longest_edge": 90}, "max_image_size": {"longest_edge": 64}, "do_image_splitting": False},
    {"size": {"longest_edge": 5000}, "max_image_size": {"longest_edge": 1024}},
]


def tile_patches(pixels, patch, merge):
    """[tiles, 3, h, w] → rows by tile and merge block; pixels beyond whole patches are not read."""
    side = pixels.shape[2] // patch
    rows = pixels[:, :, :side * patch, :side * patch].reshape(len(pixels), 3, side // merge, merge, patch, side // merge, merge, patch)
    return rows.transpose(0, 2, 5, 3, 6, 1, 4, 7).reshape(-1, 3 * patch * patch)


@pytest.mark.parametrize("settings", TILE_SETTINGS, ids=lambda s: "-".join(s) or "default")
def test_idefics3_tiles_equal_transformers(probe, settings, tmp_path):
    """Idefics3's and SmolVLM's image processors, configured by the file that save_pretrained
    writes."""
    processor = (TilePixels if settings else SmolTilePixels)(**settings)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    tile = processor.max_image_size["longest_edge"]
    rng = np.random.default_rng(len(str(settings)))
    sizes = [(2, 2), (64, 64), (333, 111), (1200, 11)] + [tuple(int(n) for n in np.exp(rng.uniform(1.5, 6, 2))) for _ in range(6)]
    sizes = {1024: [(640, 90)], 364: [(7, 900), (160, 120)]}.get(tile, sizes)
    for width, height in sizes:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = processor(images=[[Image.open(io.BytesIO(data))]], return_tensors="np", return_row_col_info=True)
        assert theirs["pixel_attention_mask"].all()
        patch, merge = {1024: (16, 4), 364: (14, 2)}.get(tile, (8, 2))
        answer, ours = probe.process(op="process_image", path=probe.file(data), config=config,
                                     tiles={"patch_size": patch, "merge_size": merge})
        assert "error" not in answer, answer
        assert answer["tiles"] == [theirs["rows"][0][0], theirs["cols"][0][0]], (width, height)
        rows = tile_patches(theirs["pixel_values"][0], patch, merge)
        assert answer["tokens"] * merge**2 == len(rows) == len(ours)
        assert np.abs(ours - rows).max() <= 1e-6


CANVAS_SETTINGS = [
    {"size": {"height": 24, "width": 24}},
    {"size": {"height": 30, "width": 30}, "min_patches": 2, "max_patches": 7, "image_std": [0.3, 0.4, 0.5]},
    {"size": {"height": 24, "width": 24}, "min_patches": 9, "max_patches": 4, "do_normalize": False},
    {"size": {"height": 32, "width": 32}, "max_patches": 1, "do_rescale": False},
]


@pytest.mark.parametrize("settings", CANVAS_SETTINGS, ids="-".join)
def test_internvl_tiles_equal_transformers(probe, settings, tmp_path):
    """InternVL's image processor, configured by the file that save_pretrained writes, as called by its prompt
    processor."""
    processor = CanvasPixels(**settings)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    rng = np.random.default_rng(len(str(settings)))
    sizes = [(2, 2), (48, 24), (60, 60), (12, 24), (333, 111), (1200, 11)]
    sizes += [tuple(int(n) for n in np.exp(rng.uniform(1.5, 6, 2))) for _ in range(12)]
    for width, height in sizes:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = processor(images=[Image.open(io.BytesIO(data))], crop_to_patches=True, return_tensors="np")
        answer, ours = probe.process(op="process_image", path=probe.file(data), config=config, canvas={"patch_size": 7, "merge_size": 1})
        assert "error" not in answer, answer
        rows = tile_patches(theirs["pixel_values"], 7, 1)
        assert answer["grid"][0] == theirs["num_patches"][0], (width, height)
        assert answer["tokens"] == len(rows) == len(ours)
        assert np.abs(ours - rows).max() <= 1e-6


def test_internvl_frame_sampling_equals_reference(probe):
    rng = np.random.default_rng(5)
    for _ in range(60):
        frames, rate = int(rng.integers(1, 3000)), float(rng.choice([1, 10, 23.976, 25, 29.97, 60]))
        for sampling in ({"num_frames": 8}, {"fps": 2}, {"num_frames": 5, "initial_shift": False}, {"fps": 0.5, "initial_shift": 3.5}):
            try:
                theirs = internvl_frames(frames, rate, **sampling)
            except (ValueError, ZeroDivisionError, RuntimeError):
                theirs = None
            answer = probe.ask(op="sample", frames=frames, fps=rate, canvas={"patch_size": 14, "merge_size": 1},
                               config=sampling | {"do_sample_frames": True})
            assert answer.get("indices") == theirs, (frames, rate, sampling, answer)
    answer = probe.ask(op="sample", frames=5, fps=30, canvas={"patch_size": 14, "merge_size": 1}, config={"num_frames": 3})
    assert answer["indices"] == [0, 1, 2, 3, 4]


ANYRES_SETTINGS = [
    (NextPixels, {"size": {"shortest_edge": 28}, "crop_size": 28}, [(1, 2), (2, 1), (2, 2), (3, 1), (1, 3)], 0),
    (NextPixels, {"size": 30, "crop_size": {"height": 30, "width": 30}, "do_resize": False, "do_center_crop": False, "image_std": 0.25,
                  "resample": 1}, [(2, 2), (4, 1)], 0),
    (OnevisionPixels, {"size": {"height": 30, "width": 30}, "image_mean": [0.5, 0.4, 0.3]}, [*itertools.product((1, 2, 3), repeat=2)], 2),
    (OnevisionPixels, {"size": {"height": 28, "width": 28}, "do_rescale": False}, [*itertools.product((1, 3), repeat=2)], 9),
]


@pytest.mark.parametrize("pixels, settings, grids, most", ANYRES_SETTINGS)
def test_anyres_processing_equals_transformers(probe, pixels, settings, grids, most, tmp_path):
    """LLaVA-NeXT's and LLaVA-OneVision's image processors, configured by the file that save_pretrained writes; with one
    picture and with several."""
    tile = settings["size"] if isinstance(settings["size"], int) else next(iter(settings["size"].values()))
    resolutions = [[rows * tile, columns * tile] for rows, columns in grids]
    processor = pixels(**settings, image_grid_pinpoints=resolutions)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    rng = np.random.default_rng(len(str(settings)))
    sizes = [(2, 2), (28, 28), (60, 60), (12, 24), (333, 111), (300, 21)]  # 4.57 takes a picture of 3 rows for 3 channels
    sizes += [tuple(int(n) for n in np.exp(rng.uniform(3, 6, 2))) for _ in range(9)]
    for width, height in sizes:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        image = Image.open(io.BytesIO(data))
        for several in [False, True][:1 + bool(most)]:
            theirs = processor([[image, image]] if several else image, return_tensors="np")["pixel_values"][0]
            answer, ours = probe.process(
                op="process_image", path=probe.file(data), config=config, several=several,
                anyres={"image_size": tile, "patch_size": 7, "pinpoints": resolutions, "most_tiles": most})
            assert "error" not in answer, (answer, width, height)
            rows = tile_patches(theirs[:1] if several else theirs, 7, 1)
            assert np.abs(ours - rows).max() <= 1e-6, (width, height)
            assert several or answer["grid"][0] == len(theirs) == 1 + answer["tiles"][0] * answer["tiles"][1]


ONEVISION_GRIDS = [[rows * 384, columns * 384] for rows in range(1, 7) for columns in range(1, 7)]


def next_tokens(height, width, pinpoints, tile, patch):
    """The count of LLaVA-NeXT's processor."""
    own = types.SimpleNamespace(image_processor=types.SimpleNamespace(image_grid_pinpoints=pinpoints), patch_size=patch,
                                num_additional_image_tokens=0)
    own._get_unpadded_features = transformers.LlavaNextProcessor._get_unpadded_features.__get__(own)
    return transformers.LlavaNextProcessor._get_number_of_features(own, height, width, tile, tile)


def onevision_tokens(height, width, pinpoints, tile, patch):
    own = types.SimpleNamespace(image_processor=types.SimpleNamespace(image_grid_pinpoints=pinpoints), vision_aspect_ratio="anyres_max_9",
                                num_image_tokens=(tile // patch)**2)
    own._get_unpadded_features = transformers.LlavaOnevisionProcessor._get_unpadded_features.__get__(own)
    return transformers.LlavaOnevisionProcessor._get_number_of_features(own, height, width, tile, tile)


@pytest.mark.parametrize("theirs, tile, pinpoints, most", [
    (next_tokens, 336, [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]], 0),
    (next_tokens, 384, [[768, 768], [384, 1152]], 0),
    (onevision_tokens, 384, ONEVISION_GRIDS, 9),
    (onevision_tokens, 224, [[224, 224], [448, 672], [2240, 224]], 9)])
def test_anyres_token_counts_equal_transformers(probe, theirs, tile, pinpoints, most):
    """For thousands of sizes, including the settings of published models: the same number as the reference's processor."""
    rng = np.random.default_rng(tile)
    sizes = [(1, 1), (336, 336), (384, 384), (672, 336), (1920, 1080), (1, 2000), (9000, 3)]
    sizes += [tuple(int(n) for n in np.exp(rng.uniform(0, 9, 2))) for _ in range(1500)]
    sizes += [(int(side * ratio) + shift, side) for side in range(20, 1500, 37) for ratio in (0.5, 1, 2, 3, 4 / 3) for shift in (-1, 0, 1)]
    config = {"size": {"height": tile, "width": tile}, "crop_size": {"height": tile, "width": tile}}
    ours = probe.ask(op="image_tokens", config=config, sizes=sizes,
                     anyres={"image_size": tile, "patch_size": 14, "pinpoints": pinpoints, "most_tiles": most})["tokens"]
    refused = 0
    for (width, height), count in zip(sizes, ours, strict=True):
        if count is None:  # the model would resize its patches to nothing
            refused += 1
            assert most and max(width, height) > 100 * min(width, height), (width, height)
        else:
            assert count == theirs(height, width, pinpoints, tile, 14), (width, height)
    assert refused < len(sizes) / 8


@pytest.mark.parametrize("settings, patch, merge", [
    ({"size": {"longest_edge": 100}}, 8, 1), ({"size": {"longest_edge": 130}, "image_std": 0.25, "resample": 1}, 6, 2),
    ({"size": {"height": 90, "width": 140}, "do_normalize": False}, 5, 3)])
def test_pixtral_processing_equals_transformers(probe, settings, patch, merge, tmp_path):
    """Pixtral's image processor, configured by the file that save_pretrained writes, with the patches of its prompt
    processor."""
    processor = PixtralPixels(**settings)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    rng = np.random.default_rng(patch)
    block, target = patch * merge, {"patch_size": patch, "merge_size": merge, "most_patches": 100}
    sizes = [(2, 2), (100, 100), (101, 99), (12, 24), (333, 111), (900, 40)]
    sizes += [tuple(int(n) for n in np.exp(rng.uniform(2, 6, 2))) for _ in range(12)]
    for width, height in sizes:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = processor(Image.open(io.BytesIO(data)), patch_size={"height": block, "width": block}, return_tensors="np")
        answer, ours = probe.process(op="process_image", path=probe.file(data), config=config, pixtral=target)
        assert "error" not in answer, answer
        _, _, rows, columns = np.array(theirs["pixel_values"]).shape
        assert answer["grid"] == [1, rows // patch, columns // patch], (width, height)
        assert answer["tokens"] == rows // block * (columns // block)
        grid = np.array(theirs["pixel_values"])[0].reshape(3, rows // block, merge, patch, columns // block, merge, patch)
        expected = grid.transpose(1, 4, 2, 5, 0, 3, 6).reshape(-1, 3 * patch * patch)
        assert np.abs(ours - expected).max() <= 1e-6


@pytest.mark.parametrize("settings", [{"size": {"height": 30, "width": 30}}, {
    "size": {"height": 56, "width": 56}, "resample": 3, "image_std": 0.25, "do_rescale": False, "pan_and_scan_max_num_crops": 2}])
def test_gemma3_processing_equals_transformers(probe, settings, tmp_path):
    processor = Gemma3Pixels(**settings)
    processor.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "preprocessor_config.json").read_text())
    side, patch = settings["size"]["width"], 5 if settings["size"]["width"] == 30 else 7
    rng = np.random.default_rng(side)
    for width, height in [(2, 2), (30, 30), (900, 40), *(tuple(int(n) for n in np.exp(rng.uniform(1.5, 6, 2))) for _ in range(12))]:
        data = encoded(Image.fromarray(picture(width, height)), "PNG")
        theirs = np.array(processor(Image.open(io.BytesIO(data)), return_tensors="np")["pixel_values"])
        answer, ours = probe.process(op="process_image", path=probe.file(data), config=config,
                                     gemma3={"image_size": side, "patch_size": patch, "tokens": 4})
        assert "error" not in answer, answer
        assert answer["grid"] == [1, side // patch, side // patch] and answer["tokens"] == 4
        grid = theirs.reshape(3, side // patch, patch, side // patch, patch).transpose(1, 3, 0, 2, 4)
        assert np.abs(ours - grid.reshape(-1, 3 * patch * patch)).max() <= 1e-6


@pytest.mark.skipif(not NEWEST, reason="4.57 samples by floats, which may be a frame more")
def test_onevision_frame_sampling_equals_reference(probe):
    rng = np.random.default_rng(6)
    target = {"image_size": 28, "patch_size": 7, "pinpoints": [[28, 28]], "most_tiles": 9}
    size = {"size": {"height": 28, "width": 28}, "image_grid_pinpoints": [[28, 28]]}
    for _ in range(60):
        frames, rate = int(rng.integers(1, 3000)), float(rng.choice([1, 10, 23.976, 25, 29.97, 60]))
        for sampling in ({"num_frames": 8}, {"fps": 2}, {"num_frames": 7}, {"fps": 0.3}, {}):
            try:
                theirs = even_frames(frames, rate, **sampling)
            except ValueError:
                theirs = None
            answer = probe.ask(op="sample", frames=frames, fps=rate, anyres=target, config=size,
                               video_config=size | sampling | {"do_sample_frames": True})
            assert answer.get("indices") == theirs, (frames, rate, sampling, answer)


@pytest.mark.skipif(not NEWEST, reason="SmolVLM's video processor of 4.57 needs torchvision")
def test_smolvlm_frame_sampling_equals_reference(probe):
    rng = np.random.default_rng(4)
    tiles = {"patch_size": 14, "merge_size": 2, "videos": True}
    for _ in range(100):
        frames, rate = int(rng.integers(1, 3000)), float(rng.choice([1, 10, 23.976, 25, 29.97, 60]))
        for fps, most in ((1, 64), (2, 8), (0.5, 3), (30, 500)):
            theirs = smolvlm_frames(frames, rate, fps=fps, num_frames=most)
            answer = probe.ask(op="sample", frames=frames, fps=rate, tiles=tiles, config={"video_sampling": {"fps": fps, "max_frames": most}})
            assert answer["indices"] == theirs.frames_indices.tolist(), (frames, rate, fps, most)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("temporal", [1, 2, 3])
def test_frame_processing_equals_transformers(probe, count, temporal):
    """The reference pads with the last frame."""
    settings = {"temporal_patch_size": temporal, "min_pixels": 28 * 28 * 4, "max_pixels": 28 * 28 * 20}
    frames = [encoded(Image.fromarray(picture(100, 80, seed=s)), "PNG") for s in range(count)]
    theirs, grid = QwenPatches.with_settings(**settings).of_video([Image.open(io.BytesIO(f)) for f in frames])
    answer, ours = probe.process(op="process_frames", paths=[probe.file(f) for f in frames], config=settings, fps=1.5)
    assert answer["grid"] == list(grid)
    assert np.abs(ours - theirs).max() <= 1e-6
    assert answer["seconds_per_grid"] == temporal / 1.5


def test_frame_sampling_equals_reference(probe):
    rng = np.random.default_rng(3)
    for _ in range(300):
        frames, fps = int(rng.integers(2, 3000)), float(rng.choice([1, 10, 23.976, 25, 29.97, 60]))
        for settings in ({"fps": 2.0}, {"fps": 1.0, "max_frames": 13}, {"num_frames": 2}, {"min_frames": 9}):
            ours = probe.ask(op="sample", frames=frames, fps=fps, video_config=settings)["indices"]
            assert ours == sample_frames(frames, fps, **settings)
