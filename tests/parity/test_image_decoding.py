"""Pixels of decoded JPEG, PNG, WebP and GIF files against PIL. test_image_formats.py has the other formats."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from media_probe import assert_close, assert_equal, encoded, picture, reference


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(samples, bits, colour_type, interlaced=False, extra=b""):
    """A PNG of any type from samples [height, width, channels]; PIL writes only some."""
    height, width, channels = samples.shape

    def row_bytes(row):
        flat = row.reshape(-1).astype(np.int64)
        if bits == 16:
            return flat.astype(">u2").tobytes()
        per_sample = (flat[:, None] >> np.arange(bits - 1, -1, -1)) & 1
        return np.packbits(per_sample.astype(np.uint8).reshape(-1)).tobytes()

    passes = ADAM7 if interlaced else [(0, 0, 1, 1)]
    raw = b""
    for x0, y0, dx, dy in passes:
        part = samples[y0::dy, x0::dx]
        if part.size:
            raw += b"".join(b"\0" + row_bytes(row) for row in part)
    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw))
            + chunk(b"IEND", b""))


SIZES = [(1, 1), (7, 5), (64, 48), (33, 129), (640, 3)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_is_close_to_pil(probe, size, subsampling, progressive):
    image = Image.fromarray(picture(*size))
    data = encoded(image, "JPEG", subsampling=subsampling, progressive=progressive, quality=85)
    assert_close(probe.decode(data), reference(data))


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_jpeg_colour_modes_are_close_to_pil(probe, mode):
    pixels = picture(50, 37, 4 if mode == "CMYK" else 1)
    data = encoded(Image.fromarray(pixels.squeeze(), mode), "JPEG", quality=95)
    assert_close(probe.decode(data), reference(data))


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("byte_order", ["<", ">"])
def test_jpeg_exif_orientation_is_applied(probe, orientation, byte_order):
    exif = Image.Exif()
    exif.endian = byte_order
    exif[0x010F] = "a maker"
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(picture(40, 24)), "JPEG", exif=exif.tobytes())
    assert_close(probe.decode(data), reference(data))


@pytest.mark.parametrize("orientation", [1, 3, 6])
def test_orientation_of_other_formats_is_applied(probe, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    xmp = f'<x:xmpmeta><rdf:Description tiff:Orientation="{orientation}"/></x:xmpmeta>'.encode()
    image = Image.fromarray(picture(40, 24))
    itxt = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp)
    for data in [
        encoded(image, "PNG", exif=exif),
        encoded(image, "WEBP", lossless=True, exif=exif),
        encoded(image, "WEBP", lossless=True, xmp=xmp),
        encoded(image, "JPEG", xmp=xmp, quality=95),
        png(picture(40, 24), 8, 2, extra=itxt),
    ]:
        theirs = reference(data)
        assert theirs.shape[0] == (40 if orientation == 6 else 24)
        assert_close(probe.decode(data), theirs)


GREY_BITS = [(0, 1), (0, 2), (0, 4), (0, 8), (0, 16)]
PALETTE_BITS = [(3, 1), (3, 2), (3, 4), (3, 8)]
COLOUR_BITS = [(2, 8), (2, 16), (4, 8), (4, 16), (6, 8), (6, 16)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("transparency", [False, True])
@pytest.mark.parametrize("colour_type,bits", GREY_BITS + PALETTE_BITS + COLOUR_BITS)
@pytest.mark.parametrize("size", [(1, 1), (5, 3), (61, 47)])
def test_png_equals_pil(probe, colour_type, bits, transparency, interlaced, size):
    rng = np.random.default_rng(colour_type * 100 + bits)
    top = min(1 << bits, 300 if colour_type == 0 else 1 << 16)
    samples = rng.integers(0, top, (size[1], size[0], CHANNELS[colour_type]))
    extra = b""
    if colour_type == 3:
        extra += chunk(b"PLTE", rng.integers(0, 256, 3 << bits, dtype=np.uint8).tobytes())
    if transparency and colour_type in (0, 2):
        extra += chunk(b"tRNS", struct.pack(">" + "H" * CHANNELS[colour_type], *samples[0, 0]))
    if transparency and colour_type == 3:
        extra += chunk(b"tRNS", bytes([0, 128]))
    data = png(samples, bits, colour_type, interlaced, extra)
    assert_equal(probe.decode(data), reference(data))


def test_png_index_beyond_the_palette_equals_pil(probe):
    data = png(np.arange(256).reshape(16, 16, 1), 8, 3, extra=chunk(b"PLTE", bytes(range(60))))
    assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("mode,channels", [("RGB", 3), ("RGBA", 4), ("L", 1), ("LA", 2), ("P", 3), ("1", 1)])
def test_png_written_by_pil_equals_pil(probe, mode, channels):
    pixels = picture(45, 31, channels).squeeze()
    image = Image.fromarray(pixels) if mode not in ("P", "1") else Image.fromarray(pixels).convert(mode)
    data = encoded(image, "PNG")
    assert_equal(probe.decode(data), reference(data))


def test_animated_png_gives_the_default_image(probe):
    frames = [Image.fromarray(picture(20, 20, seed=s)) for s in range(3)]
    data = encoded(frames[0], "PNG", save_all=True, append_images=frames[1:])
    assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("lossless", [False, True])
def test_webp_equals_pil(probe, size, channels, lossless):
    data = encoded(Image.fromarray(picture(*size, channels)), "WEBP", lossless=lossless, quality=80, exact=True)
    (assert_equal if lossless else assert_close)(probe.decode(data), reference(data))


@pytest.mark.parametrize("channels", [3, 4])
def test_animated_webp_gives_the_first_frame(probe, channels):
    frames = [Image.fromarray(picture(30, 22, channels, seed=s)) for s in range(4)]
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True, duration=50)
    assert Image.open(io.BytesIO(data)).n_frames == 4
    assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("size", SIZES + [(200, 150)])
@pytest.mark.parametrize("interlace", [0, 1])
@pytest.mark.parametrize("colours", [2, 5, 16, 256])
def test_gif_equals_pil(probe, size, interlace, colours):
    image = Image.fromarray(picture(*size)).quantize(colours)
    data = encoded(image, "GIF", interlace=interlace)
    assert_equal(probe.decode(data), reference(data))


def test_grey_gif_equals_pil(probe):
    data = encoded(Image.fromarray(picture(40, 30, 1).squeeze()), "GIF")
    assert_equal(probe.decode(data), reference(data))


def test_animated_gif_with_transparency_gives_the_first_frame(probe):
    frames = [Image.fromarray(picture(40, 30, seed=s)).quantize(32) for s in range(3)]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], transparency=3, disposal=2)
    assert_equal(probe.decode(data), reference(data))


def gif_with_offset_frame(transparent):
    """A 4 x 2 frame at (3, 1) on a canvas of 8 x 6, with codes cleared often enough to stay 3 bits
    wide."""
    palette = bytes([10, 20, 30, 200, 0, 0, 0, 200, 0, 0, 0, 200])
    control = b"!\xf9\x04" + bytes([1 if transparent else 0, 0, 0, 2]) + b"\0"
    codes = []
    for i, index in enumerate([0, 1, 2, 3, 3, 2, 1, 0]):
        codes += ([4] if i % 2 == 0 else []) + [index]
    bits = sum(code << (3 * i) for i, code in enumerate(codes + [5]))
    data = bits.to_bytes((3 * (len(codes) + 1) + 7) // 8, "little")
    return (b"GIF89a" + struct.pack("<HH", 8, 6) + bytes([0x81, 0, 0]) + palette + control
            + b"," + struct.pack("<HHHH", 3, 1, 4, 2) + b"\0" + b"\x02" + bytes([len(data)]) + data + b"\0;")


@pytest.mark.parametrize("transparent", [False, True])
def test_gif_frame_smaller_than_its_canvas_equals_pil(probe, transparent):
    data = gif_with_offset_frame(transparent)
    assert_equal(probe.decode(data), reference(data))


def test_truncated_files_are_errors(probe):
    image = Image.fromarray(picture(90, 70))
    for data in [
        encoded(image, "JPEG", quality=90),
        encoded(image, "JPEG", progressive=True),
        encoded(image, "PNG"),
        encoded(image, "WEBP", quality=80),
        encoded(image, "WEBP", lossless=True),
        encoded(image.quantize(64), "GIF")[:-2],
    ]:
        for cut in [1, 2, 3, 7, 50, len(data) // 4, len(data) // 2, len(data) - 30, len(data) - 4, len(data) - 1]:
            assert isinstance(probe.decode(data[:-cut]), str), (data[:8], cut)
