"""The media_probe program, and pictures that it decodes like PIL."""

import io
import json
import subprocess

import numpy as np
from PIL import Image, ImageOps

from programs import find_program


class Probe:
    def __init__(self, path, folder):
        self.program = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = folder
        self.count = 0

    def file(self, data):
        self.count += 1
        path = self.folder / f"{self.count}.bin"
        path.write_bytes(data)
        return str(path)

    def ask(self, **command):
        self.program.stdin.write(json.dumps(command) + "\n")
        self.program.stdin.flush()
        answer = self.program.stdout.readline()
        assert answer, "media_probe ended"
        return json.loads(answer)

    def decode(self, data):
        """RGB pixels, or the error message."""
        out = self.folder / "pixels"
        answer = self.ask(op="decode", path=self.file(data), out=str(out))
        if "error" in answer:
            return answer["error"]
        return np.fromfile(out, np.uint8).reshape(answer["height"], answer["width"], 3)

    def resize(self, pixels, width, height, **command):
        out = self.folder / "resized"
        answer = self.ask(op="resize", path=self.file(pixels.tobytes()), width=pixels.shape[1],
                          height=pixels.shape[0], to=[width, height], out=str(out), **command)
        assert answer == {}, answer
        return np.fromfile(out, np.uint8).reshape(height, width, 3)

    def process(self, **command):
        out = self.folder / "patches"
        answer = self.ask(out=str(out), **command)
        if "error" in answer:
            return answer, None
        return answer, np.fromfile(out, np.float32).reshape(-1, answer["patch_dim"])


def started_probe(tmp_path_factory):
    """For a fixture."""
    probe = Probe(find_program("media_probe"), tmp_path_factory.mktemp("media"))
    yield probe
    probe.program.stdin.close()
    assert probe.program.wait() == 0


def picture(width, height, channels=3, seed=0):
    """Smooth colours with some noise and hard edges."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    planes = []
    for c in range(channels):
        plane = 127 + 100 * np.sin(x / (5 + 3 * c) + c) * np.cos(y / (9 - c)) + rng.normal(0, 8, (height, width))
        plane[height // 3 : height // 2, width // 4 : width // 2] = 40 * c
        planes.append(plane)
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def encoded(image, image_format, **options):
    buffer = io.BytesIO()
    image.save(buffer, image_format, **options)
    return buffer.getvalue()


def reference(data):
    """Opens a picture like transformers.image_utils.load_image."""
    return np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"))


def assert_equal(ours, theirs):
    assert not isinstance(ours, str), ours
    assert ours.shape == theirs.shape
    assert np.array_equal(ours, theirs), f"largest difference {np.abs(ours.astype(int) - theirs).max()}"


def assert_close(ours, theirs):
    """Different versions of a decoder may round a JPEG or lossy WebP sample differently."""
    assert not isinstance(ours, str), ours
    assert ours.shape == theirs.shape
    assert np.abs(ours.astype(int) - theirs).max() <= 1
