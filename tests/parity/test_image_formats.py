"""BMP, TIFF, AVIF and HEIC of src/media against PIL (HEIC through pillow-heif)."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from media_probe import assert_close, assert_equal, encoded, picture, reference

SIZES = [(1, 1), (7, 5), (64, 48), (33, 129)]


def packed(row, bits):
    """Samples of less than a byte, the first one in the highest bits."""
    flat = row.reshape(-1).astype(np.int64)
    each = (flat[:, None] >> np.arange(bits - 1, -1, -1)) & 1
    return np.packbits(each.astype(np.uint8).reshape(-1)).tobytes()


# ---- BMP ----

def bmp(rows, width, height, bits, compression=0, palette=b"", header=40, masks=b"", colours=0):
    """rows: the pixel data as stored. A negative height stores the top row first."""
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 0, 0, colours, 0)
        info += (masks if header > 40 else b"").ljust(header - 40, b"\0") + (masks if header == 40 else b"")
    offset = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + info + palette + rows


def padded(rows):
    return b"".join(row + bytes(-len(row) % 4) for row in rows)


@pytest.mark.parametrize("bits", [1, 4, 8])
@pytest.mark.parametrize("header,down", [(12, False), (40, False), (40, True), (108, False), (124, True)])
@pytest.mark.parametrize("size", SIZES)
def test_bmp_with_a_palette_equals_pil(probe, bits, header, down, size):
    rng = np.random.default_rng(bits)
    width, height = size
    palette = rng.integers(0, 256, (1 << bits, 3 if header == 12 else 4), dtype=np.uint8).tobytes()
    samples = rng.integers(0, 1 << bits, (height, width))
    data = bmp(padded(packed(row, bits) for row in samples), width, -height if down else height, bits, palette=palette,
               header=header)
    assert_equal(probe.decode(data), reference(data))


def test_bmp_with_a_short_palette_equals_pil(probe):
    samples = np.arange(256).reshape(16, 16)
    data = bmp(padded(packed(row, 8) for row in samples), 16, 16, 8, palette=bytes(range(40)), colours=10)
    assert_equal(probe.decode(data), reference(data))


MASKS = {
    16: [(0xF800, 0x7E0, 0x1F, 0), (0x7C00, 0x3E0, 0x1F, 0)],
    24: [(0xFF0000, 0xFF00, 0xFF, 0)],
    32: [(0xFF0000, 0xFF00, 0xFF, 0), (0xFF000000, 0xFF0000, 0xFF00, 0), (0xFF, 0xFF00, 0xFF0000, 0xFF000000),
         (0xFF0000, 0xFF00, 0xFF, 0xFF000000), (0xFF000000, 0xFF0000, 0xFF00, 0xFF), (0, 0, 0, 0)],
}


@pytest.mark.parametrize("bits", [16, 24, 32])
@pytest.mark.parametrize("size", SIZES)
def test_bmp_with_colours_equals_pil(probe, bits, size):
    rng = np.random.default_rng(bits)
    width, height = size
    rows = padded(rng.integers(0, 256, width * bits // 8, dtype=np.uint8).tobytes() for _ in range(height))
    for data in [bmp(rows, width, height, bits), bmp(rows, width, -height, bits), bmp(rows, width, height, bits, colours=16)]:
        assert_equal(probe.decode(data), reference(data))
    for masks in MASKS[bits]:
        for header in (40, 52, 56, 108, 124):
            if header == 40 and masks[3]:
                continue
            stored = struct.pack("<IIII", *masks)[:12 if header in (40, 52) else 16]
            if header == 52 and masks[3]:
                continue
            data = bmp(rows, width, height, bits, compression=3, header=header, masks=stored)
            assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("size", SIZES)
def test_bmp_written_by_pil_equals_pil(probe, mode, size):
    image = Image.fromarray(picture(*size)).convert(mode)
    data = encoded(image, "BMP")
    assert_equal(probe.decode(data), reference(data))


def run_lengths(samples, bits, rng):
    """Runs, literal pixels, line ends and the end, as an encoder mixes them."""
    out = b""
    for row in samples:
        x = 0
        while x < len(row):
            run = 1
            while x + run < len(row) and row[x + run] == row[x] and run < 255:
                run += 1
            if bits == 8 and run < 3 and len(row) - x >= 5 and rng.random() < 0.7:
                count = int(rng.integers(3, min(255, len(row) - x) + 1))
                out += bytes([0, count, *row[x : x + count]]) + bytes(count % 2)
                x += count
            elif bits == 4 and run < 3 and len(row) - x >= 5 and rng.random() < 0.7:
                count = int(rng.integers(3, min(255, len(row) - x) + 1))
                literal = packed(np.array(row[x : x + count]), 4)
                out += bytes([0, count]) + literal + bytes(len(literal) % 2)
                x += count
            else:
                out += bytes([run, row[x] if bits == 8 else row[x] * 17])
                x += run
        out += b"\0\0"
    return out + b"\0\1"


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("size", SIZES)
def test_bmp_with_run_lengths_equals_pil(probe, bits, size):
    rng = np.random.default_rng(bits)
    width, height = size
    samples = np.repeat(rng.integers(0, 1 << bits, (height, (width + 2) // 3)), 3, axis=1)[:, :width]
    samples[:, width // 2 :] = rng.integers(0, 1 << bits, (height, width - width // 2))
    palette = rng.integers(0, 256, (1 << bits, 4), dtype=np.uint8).tobytes()
    rows = run_lengths(samples.tolist(), bits, rng)
    data = bmp(rows, width, height, bits, compression=2 if bits == 4 else 1, palette=palette)
    assert_equal(probe.decode(data), reference(data))


def test_bmp_with_a_jump_equals_pil(probe):
    palette = bytes(range(200, 232))
    rows = bytes([3, 5, 0, 2, 2, 1, 4, 6, 0, 0, 8, 1, 0, 0, 8, 2])  # three pixels, two right and one up, …
    data = bmp(rows, 8, 4, 8, compression=1, palette=palette, colours=8)
    assert_equal(probe.decode(data), reference(data))


# ---- TIFF ----

def tiff(samples, bits=8, photometric=2, order="<", extra=(), planar=False, tile=None, rows=None, fill=1, compression=1,
         colour_map=None, sample_format=1, orientation=None, dtype=None):
    """A TIFF from samples [height, width, channels], of tags that PIL does not write. tile: (width, height)."""
    height, width, channels = samples.shape
    block_width, block_height = tile or (width, rows or height)

    def encoded_block(block):
        if dtype or bits in (8, 16, 32):
            kind = dtype or {1: "u", 2: "i", 3: "f"}[sample_format] + str(bits // 8)
            raw = block.astype(order + kind).tobytes()
        else:
            raw = b"".join(packed(row, bits) for row in block)
        stored = zlib.compress(raw) if compression == 8 else raw
        return bytes(int(f"{byte:08b}"[::-1], 2) for byte in stored) if fill == 2 else stored

    blocks = []
    for plane in np.split(samples, channels, axis=2) if planar else [samples]:
        for y in range(0, height, block_height):
            for x in range(0, width, block_width):
                block = plane[y : y + block_height, x : x + block_width]
                if tile:
                    full = np.zeros((block_height, block_width, plane.shape[2]), samples.dtype)
                    full[: block.shape[0], : block.shape[1]] = block
                    block = full
                blocks.append(encoded_block(block))

    tags = {256: ("H", [width]), 257: ("H", [height]), 258: ("H", [bits] * channels), 259: ("H", [compression]),
            262: ("H", [photometric]), 266: ("H", [fill]), 277: ("H", [channels]), 284: ("H", [2 if planar else 1])}
    if tile:
        tags |= {322: ("H", [block_width]), 323: ("H", [block_height])}
    else:
        tags[278] = ("H", [block_height])
    if extra:
        tags[338] = ("H", list(extra))
    if sample_format != 1:
        tags[339] = ("H", [sample_format] * channels)
    if colour_map is not None:
        tags[320] = ("H", list(colour_map))
    if orientation:
        tags[274] = ("H", [orientation])
    offsets, counts = (324, 325) if tile else (273, 279)
    tags |= {offsets: ("I", [0] * len(blocks)), counts: ("I", [len(block) for block in blocks])}

    end = 8 + 2 + 12 * len(tags) + 4
    values = b""
    places = {}
    for tag, (kind, numbers) in tags.items():
        size = struct.calcsize(kind) * len(numbers)
        if size > 4:
            places[tag] = end + len(values)
            values += bytes(size + size % 2)
    at = end + len(values)
    tags[offsets] = ("I", [at + sum(map(len, blocks[:i])) for i in range(len(blocks))])
    directory, filled = struct.pack(order + "H", len(tags)), bytearray(values)
    for tag in sorted(tags):
        kind, numbers = tags[tag]
        content = struct.pack(f"{order}{len(numbers)}{kind}", *numbers)
        if tag in places:
            filled[places[tag] - end : places[tag] - end + len(content)] = content
            content = struct.pack(order + "I", places[tag])
        directory += struct.pack(order + "HHI", tag, 3 if kind == "H" else 4, len(numbers)) + content.ljust(4, b"\0")
    head = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    return head + directory + bytes(4) + bytes(filled) + b"".join(blocks)


LAYOUTS = [dict(), dict(rows=3), dict(tile=(16, 16)), dict(compression=8, rows=5), dict(compression=8, tile=(32, 16))]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("channels,extra,photometric", [
    (1, (), 1), (1, (), 0), (2, (0,), 1), (2, (2,), 1), (3, (), 2), (4, (0,), 2), (4, (1,), 2), (4, (2,), 2),
    (5, (2, 0), 2), (4, (), 5), (5, (0,), 5)])
def test_tiff_of_bytes_equals_pil(probe, order, layout, channels, extra, photometric):
    for size in SIZES:
        data = tiff(picture(*size, channels), photometric=photometric, extra=extra, order=order, **layout)
        assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("channels,photometric,extra", [(3, 2, ()), (4, 2, (2,)), (4, 5, ())])
def test_tiff_in_planes_equals_pil(probe, layout, channels, photometric, extra):
    if "tile" in layout and "compression" not in layout:
        layout = layout | dict(compression=8)  # PIL's reader of bare tiles takes planes wrongly
    for size in SIZES[1:]:
        data = tiff(picture(*size, channels), photometric=photometric, extra=extra, planar=True, **layout)
        assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("fill", [1, 2])
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("photometric", [0, 1, 3])
@pytest.mark.parametrize("layout", [dict(), dict(rows=3), dict(compression=8)], ids=str)
def test_tiff_of_few_bits_equals_pil(probe, fill, bits, photometric, layout):
    if (photometric, fill) == (3, 2) and not layout.get("compression"):
        pytest.skip("PIL has no reader for it")
    rng = np.random.default_rng(bits)
    colours = rng.integers(0, 1 << 16, 3 << bits) if photometric == 3 else None
    for width, height in SIZES:
        samples = rng.integers(0, 1 << bits, (height, width, 1))
        data = tiff(samples, bits, photometric, fill=fill, colour_map=colours, **layout)
        assert_equal(probe.decode(data), reference(data))


def test_tiff_with_a_palette_equals_pil(probe):
    rng = np.random.default_rng(8)
    for order in "<>":
        data = tiff(rng.integers(0, 256, (20, 30, 1)), 8, 3, order, colour_map=rng.integers(0, 1 << 16, 768))
        assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("compression", [1, 8])
def test_tiff_of_wide_samples_equals_pil(probe, order, compression):
    rng = np.random.default_rng(16)
    wide = rng.integers(0, 1 << 16, (9, 14, 4))
    grey = rng.integers(-300, 600, (9, 14, 1))
    cases = [dict(samples=wide[..., :3], bits=16), dict(samples=wide, bits=16, extra=(2,)), dict(samples=wide, bits=16, extra=(1,)),
             dict(samples=wide, bits=16, photometric=5), dict(samples=abs(grey), bits=16, photometric=1),
             dict(samples=grey, bits=16, photometric=1, sample_format=2), dict(samples=grey, bits=32, photometric=1, sample_format=2),
             dict(samples=grey / 2, bits=32, photometric=1, sample_format=3)]
    for case in cases:
        if order == ">" and compression == 8 and case["samples"].shape[2] == 1:
            continue  # PIL takes these samples for the other byte order
        data = tiff(order=order, compression=compression, **case)
        assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("compression", ["raw", "packbits", "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "lzma", "zstd"])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "I;16"])
def test_tiff_written_by_pil_equals_pil(probe, compression, mode):
    pixels = picture(61, 47)
    image = Image.fromarray(pixels[..., 0].astype(np.uint16) * 3) if mode == "I;16" else Image.fromarray(pixels).convert(mode)
    data = encoded(image, "TIFF", compression=compression)
    assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("compression", ["group3", "group4", "tiff_ccitt"])
def test_tiff_of_faxes_equals_pil(probe, compression):
    data = encoded(Image.fromarray(picture(61, 47)).convert("1"), "TIFF", compression=compression)
    assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK", "YCbCr"])
def test_tiff_with_jpeg_is_close_to_pil(probe, mode):
    data = encoded(Image.fromarray(picture(61, 47)).convert(mode), "TIFF", compression="jpeg", quality=90)
    assert_close(probe.decode(data), reference(data))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_tiff_orientation_is_applied(probe, orientation):
    for compression in (1, 8):
        data = tiff(picture(40, 24), orientation=orientation, compression=compression)
        assert_equal(probe.decode(data), reference(data))


def test_tiff_of_several_pages_gives_the_first(probe):
    pages = [Image.fromarray(picture(30, 20, seed=s)) for s in range(3)]
    data = encoded(pages[0], "TIFF", save_all=True, append_images=pages[1:])
    assert Image.open(io.BytesIO(data)).n_frames == 3
    assert_equal(probe.decode(data), reference(data))


# ---- AVIF and HEIC ----

@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("options", [dict(), dict(subsampling="4:4:4"), dict(subsampling="4:2:2"), dict(range="limited"),
                                     dict(quality=100)], ids=str)
def test_avif_equals_pil(probe, mode, options):
    for size in SIZES[1:]:
        pixels = picture(*size, len(mode)).squeeze()
        data = encoded(Image.fromarray(pixels), "AVIF", **options)
        assert_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_avif_orientation_is_applied(probe, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(picture(40, 24)), "AVIF", exif=exif)
    theirs = reference(data)
    assert theirs.shape[0] == (40 if orientation > 4 else 24)
    assert_equal(probe.decode(data), theirs)


def test_moving_avif_gives_the_first_frame(probe):
    frames = [Image.fromarray(picture(30, 22, seed=s)) for s in range(3)]
    data = encoded(frames[0], "AVIF", save_all=True, append_images=frames[1:], duration=50)
    assert_equal(probe.decode(data), reference(data))


@pytest.fixture(scope="module")
def heif():
    heif = pytest.importorskip("pillow_heif")
    heif.register_heif_opener()
    return heif


def assert_nearly_equal(ours, theirs):
    """Releases of HEVC decoders differ by a level in some pixels."""
    assert not isinstance(ours, str), ours
    assert ours.shape == theirs.shape
    difference = np.abs(ours.astype(int) - theirs)
    assert difference.max() <= 12 and difference.mean() < 0.25, (difference.max(), difference.mean())


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
@pytest.mark.parametrize("chroma", [420, 422, 444])
def test_heic_is_close_to_pil(probe, heif, mode, chroma):
    for size in SIZES[1:]:
        pixels = picture(*size, len(mode)).squeeze()
        data = encoded(Image.fromarray(pixels), "HEIF", quality=80, chroma=chroma)
        assert_nearly_equal(probe.decode(data), reference(data))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_heic_orientation_is_applied(probe, heif, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(Image.fromarray(picture(40, 24)), "HEIF", quality=80, exif=exif.tobytes())
    theirs = reference(data)
    assert_nearly_equal(probe.decode(data), theirs)


# ---- all ----

def test_truncated_files_of_other_formats_are_errors(probe):
    image = Image.fromarray(picture(90, 70))
    for data in [
        encoded(image, "BMP")[:-2],  # padding
        encoded(image, "TIFF"),
        encoded(image, "TIFF", compression="tiff_lzw"),
        tiff(picture(90, 70), rows=7, compression=8),
        encoded(image, "AVIF"),
    ]:
        for cut in [1, 7, 50, len(data) // 4, len(data) // 2, len(data) - 30, len(data) - 4]:
            assert isinstance(probe.decode(data[:-cut]), str), (data[:8], cut)


def with_size(data, width, height):
    """Other sizes in the 'ispe' boxes of an AVIF or HEIC file."""
    out = bytearray(data)
    at = data.find(b"ispe")
    while at >= 0:
        out[at + 8 : at + 16] = struct.pack(">II", width, height)
        at = data.find(b"ispe", at + 1)
    return bytes(out)


def test_sizes_in_headers_are_checked(probe, heif):
    image = Image.fromarray(picture(32, 24))
    large_bmp, large_tiff = bytearray(encoded(image, "BMP")), bytearray(tiff(picture(32, 24)))
    struct.pack_into("<ii", large_bmp, 18, 40000, 40000)
    struct.pack_into("<I", large_tiff, 18, 40000)  # the first two tags: width and height
    struct.pack_into("<I", large_tiff, 30, 40000)
    for data in [bytes(large_bmp), bytes(large_tiff), with_size(encoded(image, "AVIF"), 16000, 16000),
                 with_size(encoded(image.resize((64, 64)), "HEIF", quality=50), 16000, 16000)]:  # uncropped
        answer = probe.decode(data)
        assert isinstance(answer, str) and "over the limit" in answer, answer


def test_tiff_strips_that_share_bytes_are_refused(probe):
    data = bytearray(tiff(picture(30, 60), rows=1))
    at = data.find(struct.pack("<HHI", 273, 4, 60))
    place = struct.unpack_from("<I", data, at + 8)[0]
    first = data[place : place + 4]
    data[place : place + 240] = first * 60
    counts = struct.unpack_from("<I", data, data.find(struct.pack("<HHI", 279, 4, 60)) + 8)[0]
    data[counts : counts + 240] = struct.pack("<I", 5000) * 60
    assert "overlap" in probe.decode(bytes(data))


def test_avif_with_hidden_frames_is_refused(probe):
    data = encoded(Image.fromarray(picture(32, 24)), "AVIF")
    payload = data[data.find(b"mdat") + 4 :]
    more = b"\x1a\0" * 2000  # empty frame headers
    length = struct.pack(">I", len(payload))
    place = data.find(length, data.find(b"iloc"))
    longer = bytearray(data + more)
    longer[place : place + 4] = struct.pack(">I", len(payload) + len(more))
    struct.pack_into(">I", longer, data.find(b"mdat") - 4, len(payload) + len(more) + 8)
    assert isinstance(probe.decode(data), np.ndarray)
    assert "too many frames" in probe.decode(bytes(longer))


def test_heic_with_an_overlay_is_refused(probe, heif):
    data = encoded(Image.fromarray(picture(32, 24)), "HEIF", quality=50)
    assert "overlays" in probe.decode(data.replace(b"hvc1", b"iovl"))


@pytest.mark.parametrize("kind,name", [("JPEG2000", "JPEG 2000"), ("ICO", "icon"), ("PDF", "PDF"), ("PPM", "Netpbm"), ("DDS", "DDS")])
def test_other_formats_are_named(probe, kind, name):
    answer = probe.decode(encoded(Image.fromarray(picture(32, 32)), kind))
    assert answer.startswith("the image is ") and name in answer and "HEIC, AVIF, BMP or TIFF" in answer


@pytest.mark.parametrize("data,name", [
    (b"\xff\x0a\x01\x02", "JPEG XL"), (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"), (b"8BPS\0\1", "Photoshop"),
    (b'<?xml version="1.0"?>\n<svg width="1"/>', "SVG"), (b"\xef\xbb\xbf <!DOCTYPE html><html>", "HTML"),
    (b"\0\0\0\x18ftypmp42\0\0\0\0isommp42", "MP4"), (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "QuickTime")])
def test_other_data_is_named(probe, data, name):
    assert name in probe.decode(data)
