"""Video files that both sides decode to the same pixels: AVI with one PNG per frame."""

import io
import struct
from fractions import Fraction

from PIL import Image


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def listed(kind, *chunks):
    return chunk(b"LIST", kind + b"".join(chunks))


def avi(pngs, rate):
    """An AVI file with these frames, at `rate` frames per second."""
    rate = Fraction(rate).limit_denominator(1001)
    width, height = Image.open(io.BytesIO(pngs[0])).size
    main = struct.pack("<14I", int(1e6 / rate), 0, 0, 0x10, len(pngs), 0, 1, 1 << 20, width, height, 0, 0, 0, 0)
    stream = struct.pack("<4s4sIHHIIIIIIII4H", b"vids", b"MPNG", 0, 0, 0, 0, rate.denominator, rate.numerator, 0,
                         len(pngs), 1 << 20, 0, 0, 0, 0, width, height)
    bitmap = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MPNG", width * height * 3, 0, 0, 0, 0)
    frames, index, at = [], b"", 4
    for png in pngs:
        frames.append(chunk(b"00dc", png))
        index += struct.pack("<4sIII", b"00dc", 0x10, at, len(png))
        at += len(frames[-1])
    header = listed(b"hdrl", chunk(b"avih", main), listed(b"strl", chunk(b"strh", stream), chunk(b"strf", bitmap)))
    body = b"AVI " + header + listed(b"movi", *frames) + chunk(b"idx1", index)
    return chunk(b"RIFF", body)


def read_avi(data):
    """(PNGs, frames per second) of such a file."""
    stream = data.index(b"strh") + 8
    scale, rate = struct.unpack_from("<II", data, stream + 20)
    index = data.rindex(b"idx1")
    movi = data.index(b"movi")
    entries = struct.iter_unpack("<4sIII", data[index + 8:index + 8 + struct.unpack_from("<I", data, index + 4)[0]])
    return [data[movi + at + 8:movi + at + 8 + size] for _, _, at, size in entries], rate / scale
