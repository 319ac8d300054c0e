"""Writes and reads the samples' files: PNG pictures, and H.264 clips at two frames a second."""

import io

import av
import numpy as np
from PIL import Image

RATE = 2


def write_clip(frames, target, preset="veryslow"):
    """Near-lossless H.264; target is a path or a file object."""
    with av.open(target, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "10", "preset": preset, "tune": "stillimage"})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.thread_count = 1  # the same bytes on every machine
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode())


def read_clip(source):
    with av.open(source) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def through_codec(frames):
    """The frames as decoded from the file."""
    buffer = io.BytesIO()
    write_clip(frames, buffer)
    buffer.seek(0)
    seen = read_clip(buffer)
    if len(seen) != len(frames):
        raise ValueError(f"{len(frames)} frames written, {len(seen)} read")
    return seen


def write(frames, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_clip(frames, str(path)) if len(frames) > 1 else Image.fromarray(frames[0]).save(path, optimize=True)


def read(path):
    return read_clip(str(path)) if path.suffix == ".mp4" else [np.asarray(Image.open(path).convert("RGB"))]
