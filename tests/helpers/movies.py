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


def box(name, *content):
    data = b"".join(content)
    return struct.pack(">I", 8 + len(data)) + name + data


def full_box(name, *content):
    return box(name, bytes(4), *content)


def mp4(pngs, durations, scale):
    """An MP4 file with these frames, which are shown for `durations` in units of 1 / scale seconds."""
    width, height = Image.open(io.BytesIO(pngs[0])).size
    total = sum(durations)
    matrix = struct.pack(">9I", 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    sample = box(b"png ", bytes(6), struct.pack(">H", 1), bytes(16), struct.pack(">HHIIIH", width, height, 72 << 16, 72 << 16, 0, 1),
                 bytes(32), struct.pack(">Hh", 24, -1))
    head = box(b"ftyp", b"isom", bytes(4), b"isommp41")

    def movie(start):
        table = box(b"stbl", full_box(b"stsd", struct.pack(">I", 1), sample),
                    full_box(b"stts", struct.pack(">I", len(pngs)), *(struct.pack(">II", 1, d) for d in durations)),
                    full_box(b"stsc", struct.pack(">IIII", 1, 1, len(pngs), 1)),
                    full_box(b"stsz", struct.pack(f">II{len(pngs)}I", 0, len(pngs), *map(len, pngs))),
                    full_box(b"stco", struct.pack(">II", 1, start)))
        data = box(b"dinf", full_box(b"dref", struct.pack(">I", 1), box(b"url ", b"\0\0\0\1")))
        media = box(b"mdia", full_box(b"mdhd", struct.pack(">IIIIHH", 0, 0, scale, total, 0x55C4, 0)),
                    full_box(b"hdlr", bytes(4), b"vide", bytes(13)),
                    box(b"minf", box(b"vmhd", b"\0\0\0\1", bytes(8)), data, table))
        track = box(b"trak", box(b"tkhd", b"\0\0\0\7", struct.pack(">IIIII", 0, 0, 1, 0, total), bytes(16), matrix,
                                 struct.pack(">II", width << 16, height << 16)), media)
        header = full_box(b"mvhd", struct.pack(">IIIIIH", 0, 0, scale, total, 1 << 16, 256), bytes(10), matrix, bytes(24),
                          struct.pack(">I", 2))
        return box(b"moov", header, track)

    return head + movie(len(head) + len(movie(0)) + 8) + box(b"mdat", *pngs)
