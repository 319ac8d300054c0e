"""The requests of a soak test (soak.py), and parsers for their answers."""

import base64
import http.client
import io
import json
import struct
import zlib

import numpy
from PIL import Image

CHAT = "/v1/chat/completions"


def request(url, method, path, body=None):
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=120)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def picture(seed):
    """A PNG of noise over a gradient; its size and pixels depend on the seed."""
    generator = numpy.random.default_rng(seed)
    height, width = generator.integers(40, 200, 2)
    pixels = numpy.linspace(0, 200, width, dtype=numpy.uint8)[None, :, None] + generator.integers(0, 55, (height, width, 3), dtype=numpy.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def chat(model, text, *images, **fields):
    urls = [data if isinstance(data, str) else "data:image/png;base64," + base64.b64encode(data).decode() for data in images]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls] + [{"type": "text", "text": text}]
    return {"model": model, "messages": [{"role": "user", "content": parts}], "temperature": 0, "max_tokens": 24, "ignore_eos": True,
            "head": ""} | fields


def content(text, streamed):
    if not streamed:
        return json.loads(text)["choices"][0]["message"]["content"]
    chunks = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def places(text, streamed):
    """(token, log probability) of the most likely tokens, for each token of an answer that has them."""
    bodies = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")] if streamed else [json.loads(text)]
    scored = [choice["logprobs"]["content"] for body in bodies for choice in body["choices"] if choice.get("logprobs")]
    return [[(token["token"], token["logprob"]) for token in place["top_logprobs"]] for part in scored for place in part]


def huge_png(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")
