#!/usr/bin/env python3
"""Writes fuzz/corpus: small valid (and near-valid) inputs of each target, from which fuzzing starts.

Run by hand after a target or a format has changed; the result is committed. Needs Pillow, pillow-heif, PyAV and tokenizers."""

import base64
import io
import json
import pathlib
import shutil
import struct

import av
import numpy as np
import pillow_heif
import tokenizers
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent / "corpus"
SEPARATOR = b"\n%%%%\n"  # Input::kSeparator
MADE = set()  # the targets whose folders have been started


def put(target, name, *parts):
    folder = ROOT / target
    if target not in MADE:  # seeds of other targets are written by hand
        shutil.rmtree(folder, ignore_errors=True)
        MADE.add(target)
    folder.mkdir(parents=True, exist_ok=True)
    data = SEPARATOR.join(part if isinstance(part, bytes) else part.encode() for part in parts)
    (folder / name).write_bytes(data)


def text(value):
    return json.dumps(value, separators=(",", ":"))


# ---- files ----

def safetensors(tensors, metadata=None):
    header, data = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    encoded = text(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + data


def floats(*shape):
    count = int(np.prod(shape))
    return "F32", list(shape), np.linspace(-1, 1, count, dtype=np.float32).tobytes()


def halves(*shape):
    count = int(np.prod(shape))
    return "F16", list(shape), np.linspace(-1, 1, count, dtype=np.float16).tobytes()


def safetensors_seeds():
    put("safetensors", "two", safetensors({"a": floats(2, 3), "b": halves(4)}))
    put("safetensors", "metadata", safetensors({"w": ("BF16", [1, 2], b"\0\1\2\3")}, {"format": "pt"}))
    put("safetensors", "empty-shapes", safetensors({"s": ("U8", [], b"x"), "e": ("I64", [0, 7], b"")}))
    put("safetensors", "none", safetensors({}))
    put("safetensors", "hole", safetensors({"a": floats(2)}) + b"more")


def gguf_text(value):
    encoded = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def gguf_value(value):
    """Returns the type and the encoded value of metadata; lists must have elements of one type."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + gguf_text(value)
    parts = [gguf_value(one) for one in value]
    return struct.pack("<I", 9) + parts[0][:4] + struct.pack("<Q", len(parts)) + b"".join(part[4:] for part in parts)


def gguf(metadata, tensors=(), version=3):
    """tensors: (name, sizes with the contiguous dimension first, type number, bytes)"""
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += gguf_text(key) + gguf_value(value)
    data = b""
    for name, sizes, kind, content in tensors:
        head += gguf_text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, len(data))
        data += content + bytes(-len(content) % 32)
    return head + bytes(-len(head) % 32) + data


def gguf_seeds():
    words = {"tokenizer.ggml.tokens": ["a", "b", "ab"], "tokenizer.ggml.token_type": [1, 1, 3], "tokenizer.ggml.scores": [0.5, 1.0, -1.0]}
    put("gguf", "metadata", gguf({"general.architecture": "llama", "llama.block_count": 2, "flag": True, **words}))
    put("gguf", "tensors", gguf({"general.alignment": 32}, [
        ("token_embd.weight", [32, 2], 8, bytes(68)), ("output_norm.weight", [4], 0, bytes(16)), ("k", [256], 12, bytes(144)),
        ("h", [2, 2], 30, bytes(8))]))
    put("gguf", "version-2", gguf({"a": 1.5}, [("w", [1], 1, b"ab")], version=2))
    for kind, more in (("llama", {}), ("qwen2", {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}), ("qwen3", {}),
                       ("gemma3", {"attention.sliding_window": 4})):
        sizes = {"context_length": 64, "embedding_length": 32, "block_count": 1, "feed_forward_length": 48, "attention.head_count": 4,
                 "attention.layer_norm_rms_epsilon": 0.5} | more
        put("gguf", f"model-{kind}", gguf(
            {"general.architecture": kind, "tokenizer.ggml.model": "gpt2", **words} | {f"{kind}.{key}": value for key, value in sizes.items()},
            [("token_embd.weight", [32, 3], 8, bytes(102)), *([("rope_freqs.weight", [4], 0, struct.pack("<4f", 1, 2, 3, 4))] * (kind == "llama"))]))
    put("gguf", "not-read", gguf({}, [("w", [256], 16, bytes(66))]))
    for projector, last in (("gemma3", "mm.input_projection.weight"), ("mlp", "mm.2.weight"), ("qwen3vl_merger", "mm.2.weight")):
        vision = {"image_size": 28, "patch_size": 7, "embedding_length": 8, "block_count": 1, "attention.head_count": 2,
                  "projector.scale_factor": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
        put("gguf", f"vision-{projector}", gguf(
            {"general.architecture": "clip", "general.type": "mmproj", "clip.projector_type": projector, "clip.use_gelu": True}
            | {f"clip.vision.{key}": value for key, value in vision.items()},
            [(last, [32, 8] if projector == "gemma3" else [8, 32], 1, bytes(512)), ("v.blk.0.ffn_up.weight", [8, 12], 1, bytes(192)),
             ("v.position_embd.weight", [8, 16], 0, bytes(512))]))


def gguf_tokenizer_seeds():
    def settings(model, tokens, kinds, **more):
        base = {"model": model, "tokens": tokens, "token_type": kinds, "bos_token_id": 0} | more
        return {f"tokenizer.ggml.{key}": value for key, value in base.items()}
    letters = ["<s>", "a", "b", "c", "ab", "abc", "\u0120", "1", "<tool>"]
    kinds = [3, *[1] * 7, 4]
    for pre in ("gpt-2", "smollm", "qwen2", "llama-bpe", "tekken"):
        put("gguf_tokenizer", pre, gguf(settings("gpt2", letters, kinds, pre=pre, merges=["a b", "ab c"], eos_token_id=8)
                                        | {"tokenizer.chat_template": "{{ bos_token }}"}), "abc a1 <s>b<tool>")
    pieces = ["<s>", "<unk>", "\u2581", "a", "b", "ab", "\u2581a", "<0x0A>", "  ", "\u2581ab"]
    put("gguf_tokenizer", "scores", gguf(settings(
        "llama", pieces, [3, 2, 1, 1, 1, 1, 1, 6, 4, 1], scores=[0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, 0.0, 0.0, -6.0], unknown_token_id=1,
        add_space_prefix=True)), "ab  a\nb")


# ---- adapters, matching the module table of src/adapters/testing/adapter_folder.h ----

def lora(module, rank, inner, outer, make=floats):
    prefix = f"base_model.model.{module}."
    return {prefix + "lora_A.weight": make(rank, inner), prefix + "lora_B.weight": make(outer, rank)}


def adapter_seeds():
    layers = [f"model.language_model.layers.{i}" for i in range(2)]
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 3, "target_modules": ["q_proj"]}
    tensors = {**lora(layers[0] + ".self_attn.q_proj", 2, 4, 4), **lora(layers[1] + ".self_attn.q_proj", 2, 4, 4)}
    put("adapter", "plain", text(config), b"", safetensors(tensors))

    rich = {**config, "use_rslora": True, "target_modules": r".*\.(q_proj|up_proj)", "exclude_modules": ["lm_head"],
            "rank_pattern": {"up_proj": 1, r"layers\.1\..*": 2}, "alpha_pattern": {"^q_proj": 8.5},
            "modules_to_save": ["score"], "bias": "none", "init_lora_weights": True, "inference_mode": True}
    rich_tensors = {**tensors, "base_model.model.score.weight": floats(3, 4), "base_model.model.score.bias": floats(3)}
    for layer in layers:
        rich_tensors.update(lora(layer + ".mlp.up_proj", 1 if layer == layers[0] else 2, 4, 6))
    sidecar = {"task": "cars", "description": "d", "question": "q",
               "heads": [{"name": "score", "labels": ["a", "b", "c"], "problem_type": "single_label_classification",
                          "pooling": "last", "add_generation_prompt": True}]}
    put("adapter", "rich", text(rich), text(sidecar), safetensors(rich_tensors))

    old = {key.replace("language_model.", ""): value for key, value in tensors.items()}
    put("adapter", "old-names", text({**config, "target_modules": "all-linear"}), b"", safetensors(old))
    layered = {**config, "layers_to_transform": [0], "layers_pattern": "layers"}
    put("adapter", "layers", text(layered), b"", safetensors(lora(layers[0] + ".self_attn.q_proj", 2, 4, 4, halves)))
    heads = {"peft_type": "LORA", "r": 4, "target_modules": [], "modules_to_save": ["score", "classifier"]}
    put("adapter", "heads", text(heads), text({"task": "moods"}),
        safetensors({"base_model.model.score.weight": floats(1, 4), "base_model.model.classifier.weight": floats(2, 4)}))
    for key, value in {"use_dora": True, "lora_bias": True, "init_lora_weights": "pissa", "peft_type": "IA3"}.items():
        put("adapter", f"refused-{key}", text({**config, key: value}), b"", safetensors(tensors))


def regex_seeds():
    names = ["model.language_model.layers.0.self_attn.q_proj", "lm_head", ""]
    patterns = {
        "suffix": r".*\.(q|k|v|o)_proj", "layers": r"(?:.*?(?:language|text).*?layers\.(\d+)).*?(?:q_proj|up_proj).*?",
        "plain": "self_attn.q_proj", "class": r"[^.]*\.[[:alpha:]]*", "count": r"(\w+\.){2,5}q_proj", "open": r"a{,3}b",
        "lookaround": r"(?=.*attn)(?!.*visual).*q_proj(?<=proj)", "hungry": r"((\w+)*)*x", "back": r"(.)\1.*", "utf": "é.*",
    }
    for name, pattern in patterns.items():
        put("lora_regex", name, pattern, *names)


# ---- text ----

def byte_level(merges=(), **changes):
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocab = {token: i for i, token in enumerate(alphabet)}
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    part = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": {"type": "NFC"}, "pre_tokenizer": part,
            "post_processor": part, "decoder": part,
            "added_tokens": [{"id": len(vocab), "content": "<|end|>", **flags, "normalized": False, "special": True}],
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": vocab, "merges": [list(merge) for merge in merges]}, **changes}


def small_bpe(**changes):
    vocab = {"<unk>": 0, "<s>": 1, "a": 2, "b": 3, "ab": 4, "▁": 5, "▁a": 6, "<0x41>": 7, "<0xC3>": 8, "<0xA9>": 9}
    json_ = byte_level(normalizer=None, pre_tokenizer=None, post_processor=None, added_tokens=[])
    json_["model"].update(vocab=vocab, merges=["a b", "▁ a"], unk_token="<unk>", fuse_unk=True)
    json_.update(changes)
    return json_


def tokenizer_seeds():
    split = {"type": "Split", "pattern": {"Regex": r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+"},
             "behavior": "Isolated", "invert": False}
    inner = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    put("tokenizer", "byte-level", text(byte_level([("a", "b"), ("ab", "c")])), "abc ab<|end|> é\u0301 日本 123")
    put("tokenizer", "split", text(byte_level(pre_tokenizer={"type": "Sequence", "pretokenizers": [
        split, {"type": "Digits", "individual_digits": True}, inner]})), "It's 1234  a\n\n")
    put("tokenizer", "small", text(small_bpe()), "abba é a")
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                                                        {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    stripped = {"id": 1, "content": "<s>", "single_word": True, "lstrip": True, "rstrip": True, "normalized": True,
                "special": False}
    put("tokenizer", "template", text(small_bpe(post_processor=template, added_tokens=[stripped])), "a <s> b")
    llama = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
                                                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    decoder = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                               {"type": "ByteFallback"}, {"type": "Fuse"},
                                               {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    fallback = small_bpe(normalizer=llama, decoder=decoder)
    fallback["model"]["byte_fallback"] = True
    put("tokenizer", "llama", text(fallback), "Aé a b")
    metaspace = small_bpe(pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False},
                          decoder=decoder)
    metaspace["model"]["byte_fallback"] = True
    put("tokenizer", "metaspace", text(metaspace), "a b  a")
    for name, content in {"ascii": b"\0Hello, it's 42!\n\n  <|im_start|>", "unicode": "\1é\u0301 日本 🦀 \u200d".encode(),
                          "broken": b"\1\xff\xe2\x82\xf0\x9f\x80a\xc0\xaf", "ids": bytes(range(64))}.items():
        put("detokenizer", name, content)


def template_seeds():
    talk = "sBe short.\nuHello #world% x\naYes.\nuAgain"
    templates = {
        "turns": "{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}{{ eos_token }}\n{% endfor %}"
                 "{% if add_generation_prompt %}<|assistant|>{% endif %}",
        "parts": "{%- set ns = namespace(images=0) -%}{%- for m in messages -%}{%- if m.content is string -%}{{ m.content }}"
                 "{%- else -%}{%- for p in m.content -%}{%- if p.type == 'image' or 'image' in p -%}"
                 "{%- set ns.images = ns.images + 1 -%}Picture {{ ns.images }}: <image>"
                 "{%- elif p.text is defined -%}{{ p.text }}{%- endif -%}{%- endfor -%}{%- endif -%}{%- endfor -%}",
        "macro": "{% macro turn(role, text='') -%}[{{ role | upper }}] {{ text | replace('a', 'b') }}{%- endmacro %}"
                 "{% for m in messages[1:] %}{{ turn(m.role, text=m.content) }}{% if not loop.last %}, {% endif %}{% endfor %}",
        "checks": "{% if messages | length > 9 or messages[0].role != 'system' %}{{ raise_exception('no: ' ~ messages[0].role) }}"
                  "{% endif %}{{ strftime_now('%d %B %Y') }} {{ tools | default([], true) | tojson }}"
                  "{{ messages | map(attribute='role') | join(' ') }}{{ 7 // 2 % 3 ** 2 - -1 }}",
        "slices": "{{ messages[::-1][0].content[-3:] }}{{ 'a,b'.split(',') | first }}{{ {'k': [1, 2.5, none, true]}.items() | list }}"
                  "{% for i in range(3) if i is odd %}{{ loop.index0 }}{% else %}none{% endfor %}{# remark #}"
                  "{{ 'x' if true else 'y' }}{% set a, b = (1, 2) %}{{ a ~ b }}{{ messages | selectattr('role', 'equalto', 'user') | list | count }}",
    }
    for name, template in templates.items():
        put("chat_template", name, template, text({"tools": None, "name": "x", "deep": [[{"a": 1}]]}), talk)


# ---- media ----

def picture(width, height, mode="RGB"):
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([x * 9 % 256, y * 7 % 256, (x + y) * 5 % 256], -1).astype(np.uint8)).convert(mode)


def encoded(image, **options):
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


def image_seeds():
    exif = Image.Exif()
    exif[0x0112] = 6
    for mode in ("RGB", "L", "CMYK"):
        put("jpeg", mode.lower(), encoded(picture(17, 9, mode), format="JPEG", quality=60))
    put("jpeg", "progressive", encoded(picture(24, 16), format="JPEG", progressive=True))
    put("jpeg", "turned", encoded(picture(16, 8), format="JPEG", exif=exif, quality=40))
    put("jpeg", "restarts", encoded(picture(40, 24), format="JPEG", restart_marker_blocks=1, subsampling=0))

    for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"):
        image = picture(11, 7, "L" if mode == "I;16" else mode)
        if mode == "I;16":
            image = Image.fromarray(np.asarray(image).astype(np.uint16) * 3)
        put("png", mode.lower().replace(";", "-"), encoded(image, format="PNG"))
    put("png", "turned", encoded(picture(8, 4), format="PNG", exif=exif))

    put("webp", "lossy", encoded(picture(16, 9), format="WEBP", quality=40))
    put("webp", "lossless", encoded(picture(9, 9, "RGBA"), format="WEBP", lossless=True))
    put("webp", "turned", encoded(picture(12, 5), format="WEBP", exif=exif.tobytes()))
    frames = [picture(8, 8), picture(8, 8).rotate(90), picture(8, 8).rotate(180)]
    put("webp", "moving", encoded(frames[0], format="WEBP", save_all=True, append_images=frames[1:], duration=40))

    put("gif", "plain", encoded(picture(13, 6, "P"), format="GIF", interlace=0))
    put("gif", "interlaced", encoded(picture(9, 17, "P"), format="GIF", interlace=1))
    put("gif", "grey", encoded(picture(7, 7, "L"), format="GIF", transparency=3))
    put("gif", "moving", encoded(frames[0], format="GIF", save_all=True, append_images=frames[1:], duration=40))

    later_image_seeds(exif, frames)

    tiff = b"II*\0\x08\0\0\0\1\0" + struct.pack("<HHIHH", 0x0112, 3, 1, 6, 0) + bytes(4)
    put("orientation", "little", b"Exif\0\0" + tiff, b"")
    put("orientation", "big", b"MM\0*\0\0\0\x08\0\1" + struct.pack(">HHIHH", 0x0112, 3, 1, 8, 0) + bytes(4), b"")
    put("orientation", "xmp", b"", b'<rdf:Description tiff:Orientation="5"/><tiff:Orientation>3<')


def later_image_seeds(exif, frames):
    """BMP, TIFF, AVIF and HEIC; needs pillow-heif."""
    pillow_heif.register_heif_opener()
    for mode in ("RGB", "RGBA", "L", "P", "1"):
        put("bmp", mode.lower(), encoded(picture(11, 7, mode), format="BMP"))
    plain = encoded(picture(8, 4, "P"), format="BMP")
    head, palette = plain[:54], plain[54 : 54 + 1024]
    runs = b"\x03\x05\0\x04\x01\x02\x03\x04\0\0\x08\x07\0\0\0\x02\x01\x01\x05\x09\0\x01"
    put("bmp", "runs", head[:30] + struct.pack("<I", 1) + head[34:] + palette + runs)
    masks = struct.pack("<III", 0xF800, 0x7E0, 0x1F)
    put("bmp", "masks", head[:10] + struct.pack("<I", 66) + head[14:28] + struct.pack("<HI", 16, 3) + head[34:46] + bytes(8) + masks + bytes(64))

    for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "CMYK", "I;16"):
        image = Image.fromarray(np.asarray(picture(11, 7, "L")).astype(np.uint16) * 3) if mode == "I;16" else picture(11, 7, mode)
        put("tiff", mode.lower().replace(";", "-"), encoded(image, format="TIFF"))
    for compression in ("tiff_lzw", "packbits", "tiff_adobe_deflate", "jpeg", "zstd", "lzma"):
        put("tiff", compression, encoded(picture(16, 16), format="TIFF", compression=compression))
    for compression in ("group3", "group4"):
        put("tiff", compression, encoded(picture(16, 16, "1"), format="TIFF", compression=compression))
    put("tiff", "pages", encoded(frames[0], format="TIFF", save_all=True, append_images=frames[1:]))
    put("tiff", "turned", encoded(picture(8, 4), format="TIFF", exif=exif))

    for mode in ("RGB", "RGBA", "L"):
        put("avif", mode.lower(), encoded(picture(16, 9, mode), format="AVIF", quality=40))
        put("heic", mode.lower(), encoded(picture(16, 9, mode), format="HEIF", quality=40))
    put("avif", "turned", encoded(picture(16, 9), format="AVIF", quality=40, exif=exif))
    put("heic", "turned", encoded(picture(16, 9), format="HEIF", quality=40, exif=exif.tobytes()))
    put("avif", "moving", encoded(frames[0], format="AVIF", save_all=True, append_images=frames[1:], duration=40))


def video(container, codec, pixels, rate=10, frames=4):
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 32, 16, pixels
        for i in range(frames):
            for packet in stream.encode(av.VideoFrame.from_image(picture(32, 16).rotate(90 * i, expand=False))):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)
    return out.getvalue()


def video_seeds():
    put("video", "mp4-mpeg4", video("mp4", "mpeg4", "yuv420p"))
    put("video", "avi-mjpeg", video("avi", "mjpeg", "yuvj420p"))
    put("video", "mkv-ffv1", video("matroska", "ffv1", "yuv420p"))
    for name, container, codec in (("mp4-h264", "mp4", "libx264"), ("webm-vp8", "webm", "libvpx")):
        put("video", name, video(container, codec, "yuv420p"))


def settings_seeds():
    image = {"do_resize": True, "do_rescale": True, "do_normalize": True, "rescale_factor": 1 / 255, "resample": 3,
             "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "patch_size": 4, "temporal_patch_size": 2,
             "merge_size": 2, "min_pixels": 64, "max_pixels": 4096, "image_processor_type": "Qwen2VLImageProcessor"}
    video_ = {**image, "fps": 2, "min_frames": 2, "max_frames": 16, "video_processor_type": "Qwen2VLVideoProcessor"}
    sizes = b"".join(struct.pack("<HHBHBB", w, h, f, n, s, r) for w, h, f, n, s, r in
                     ((32, 24, 3, 90, 0, 96), (1, 60, 1, 5, 40, 1), (640, 480, 8, 65535, 46, 255), (64, 64, 2, 3, 3, 7)))
    put("image_settings", "image", text(image), b"", sizes)
    put("image_settings", "both", text(image), text(video_), sizes)
    put("image_settings", "size", text({"size": {"shortest_edge": 64, "longest_edge": 1024}, "patch_size": 2}),
        text({"num_frames": 4, "do_resize": False}), sizes)
    put("image_settings", "tiles", text({"size": {"longest_edge": 40}, "max_image_size": {"longest_edge": 18}, "resample": 1,
                                         "do_image_splitting": True, "image_processor_type": "SmolVLMImageProcessor"}),
        text({"image_seq_len": 4}), sizes)
    put("image_settings", "pixtral", text({"size": {"longest_edge": 64}, "patch_size": {"height": 8, "width": 8}, "do_pad": True,
                                           "image_processor_type": "PixtralImageProcessor"}), "", sizes)
    put("image_settings", "anyres", text({"size": {"height": 16, "width": 16}, "crop_size": {"height": 16, "width": 16}, "do_pad": True,
                                          "image_grid_pinpoints": [[16, 32], [32, 32]], "image_processor_type": "LlavaNextImageProcessor"}),
        text({"size": {"height": 16, "width": 16}, "crop_size": 16, "do_sample_frames": True, "num_frames": 2}), sizes)
    put("image_settings", "canvas", text({"size": {"height": 16, "width": 16}, "max_patches": 6, "image_processor_type": "GotOcr2ImageProcessor"}),
        text({"size": {"height": 16, "width": 16}, "do_sample_frames": True, "num_frames": 2, "initial_shift": 0.5}), sizes)


def url_seeds():
    pixel = base64.b64encode(encoded(picture(2, 2), format="PNG")).decode()
    for name, url in {"png": f"data:image/png;base64,{pixel}", "frames": "data:video/jpeg;base64,QUJD,QQ==,QUI",
                      "spaces": "data:;base64, Q U J D\n", "plain": "data:text/plain,abc", "unpadded": "DATA:x;Base64,QQ",
                      "file": "file://FILES/open/a.png", "escape": "file://FILES/open/%2e%2e/secret",
                      "link": "file://localhostFILES/open/link", "zero": "file:FILES/open/a.png%00", "http": "http://127.0.0.1/"
                      }.items():
        put("media_url", name, url)


# ---- requests ----

def request_bodies():
    turn = {"role": "user", "content": [{"type": "text", "text": "hi"},
                                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ==", "detail": "low"}},
                                        {"type": "video_url", "video_url": "file:///a.mp4"}, "bare"]}
    sampling = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.1, "repetition_penalty": 1.1, "n": 2,
                "presence_penalty": -2, "frequency_penalty": 2, "logit_bias": {"12": -100, "7": 1.5}, "seed": -7,
                "stop": ["a", "b"], "stop_token_ids": [1, 2], "min_tokens": 1, "ignore_eos": True,
                "skip_special_tokens": False, "include_stop_str_in_output": True, "max_tokens": 5}
    chat = {"model": "base:lens", "messages": [{"role": "developer", "content": "be short"}, turn,
                                              {"role": "assistant", "content": None}], **sampling,
            "logprobs": True, "top_logprobs": 4, "head": "score", "lora": [{"name": "lens", "scale": 0.5}, {"id": "b"}]}
    stream = {"messages": [{"role": "user", "content": "hi"}], "stream": True, "return_token_ids": True,
              "stream_options": {"include_usage": True, "continuous_usage_stats": True}, "max_completion_tokens": 3,
              "response_format": {"type": "text"}, "tool_choice": "none", "modalities": ["text"]}
    function = {"name": "look", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}, "strict": True}
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"a": "b"}'}}
    tools = {"messages": [turn, {"role": "assistant", "content": None, "tool_calls": [call]},
                          {"role": "tool", "tool_call_id": "c", "content": "a cat"}],
             "tools": [{"type": "function", "function": function}], "parallel_tool_calls": False,
             "tool_choice": {"type": "function", "function": {"name": "look"}}}
    response = {"model": "lens", "instructions": "be short", "max_output_tokens": 4, "stream": True, "tools": [{"type": "function"} | function],
                "input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}]},
                          {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
                          {"type": "function_call_output", "call_id": "c", "output": "a cat"}],
                "tool_choice": "required", "text": {"format": {"type": "text"}}}
    completion = {"model": "lens", "prompt": ["a", [1, 2, 3]], "logprobs": 2, **sampling}
    return [("chat", 0, "/v1/chat/completions", chat), ("tools", 0, "/v1/chat/completions", tools),
            ("response", 5, "/v1/responses", response), ("stream", 0, "/v1/chat/completions", stream),
            ("completion", 1, "/v1/completions", completion), ("ids", 1, "/v1/completions", {"prompt": [5, 6], "stream": True}),
            ("classify", 2, "/classify", {"input": ["a", "b"], "use_activation": False, "model": "lens", "head": "score"}),
            ("classify-chat", 2, "/v1/classify", {"messages": [turn], "add_generation_prompt": False}),
            ("tokenize", 3, "/tokenize", {"prompt": "a b", "add_special_tokens": False}),
            ("tokenize-chat", 3, "/tokenize", {"messages": [turn]}),
            ("detokenize", 4, "/detokenize", {"model": "lens", "tokens": [1, 2, 3]})]


def tool_call_seeds():
    hermes = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"at": "}\\"", "n": [1, {}]}}\n</tool_call>\n<tool_call>{"name": "f"}</tool_call>'
    put("tool_calls", "hermes", b"\x00\x02" + hermes.encode())
    put("tool_calls", "llama3_json", b'\x01\x03{"name": "f", "parameters": {"a": [1]}}; {"type": "function", "name": "look"}')
    put("tool_calls", "pythonic", b"\x02\x00[f(a='it\\'s', b=[1, None], c={\"d\": True}), look()]")
    put("tool_calls", "one", b"\x03\x07" + hermes.encode())


def request_seeds():
    def http(method, path, body=b"", headers=()):
        return "\n".join([f"{method} {path}", *headers, "", body if isinstance(body, str) else body.decode()])

    for name, endpoint, path, body in request_bodies():
        put("request_body", name, bytes([endpoint]) + text(body).encode())
        put("http", name, http("POST", path, text(body), ["Content-Type: application/json", "X-Request-Id: abc"]))
    load = {"lora_name": "new", "lora_path": "/adapters/new", "load_inplace": True, "pinned": True, "expected_generation": 0}
    put("http", "load", http("POST", "/v1/load_lora_adapter", text(load)))
    put("http", "load-missing", http("POST", "/v1/load_lora_adapter", text({"lora_name": "x", "lora_path": "missing"})))
    put("http", "unload", http("POST", "/v1/unload_lora_adapter", text({"lora_name": "lens", "expected_generation": 1})))
    for name, path in {"models": "/v1/models", "model": "/v1/models/base%3Alens", "adapters": "/v1/lora_adapters",
                       "metrics": "/metrics", "health": "/health", "escape": "/%zz/%00"}.items():
        put("http", name, http("GET", path, headers=["Origin: https://a.example", "Authorization: Bearer k"]))
    put("http", "options", http("OPTIONS", "/v1/models", headers=["Access-Control-Request-Headers: x"]))

    chunk = {"choices": [{"index": 0, "delta": {"content": "hi"}}],
             "usage": {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 2}}}
    events = f"data: {text(chunk)}\n\n: a comment\r\ndata: [DONE]\r\n\r\n"
    put("answer_reader", "stream", b"\x0b" + events.encode())
    put("answer_reader", "whole", b"\x06" + text(chunk).encode())
    put("answer_reader", "error", b"\x04" + text({"error": {"message": "no", "code": 404}}).encode())
    put("answer_reader", "stream-error", b'\x07data: {"error":{"message":"no"}}\n\n')
    for name, value in {"numbers": {"a": 1, "b": -2.5, "c": 2**53, "d": 2**64, "e": 1e300}, "deep": [[[[[[[[1]]]]]]]],
                        "texts": {"é": "\u2028\ud7ff", "n": None, "t": True}}.items():
        put("json", name, text(value))
    put("json", "twice", '{"a":1,"a":2}')


# ---- models ----

def task_seeds():
    source = "train: a.jsonl\n    validation: {path: b.jsonl, media_root: pictures, limit: 3}\n"
    put("tasks_file", "classification", f"""tasks:
  - name: one
    type: classification
    {source}    labels: [a, "b", 0]
    head: {{name: score, multi_label: true}}
    floor: 0.5
    weight: 2e0
    question: "Which of {{labels}}?"
""")
    put("tasks_file", "detection", f"""tasks:
  - {{name: two, type: detection, train: boxes.json, validation: b.jsonl, boxes: {{scale: 100, labels: false}}}}
  - name: three
    type: grounding # a comment
    {source}    question: >-
      Box the
      {{label}}
""")
    put("tasks_file", "teacher", text({"tasks": [{"name": "t", "type": "classification", "labels": ["a", "b"], "teacher": {
        "kind": "torchscript", "path": "teacher.pt", "inputs": "pictures", "output": "scores", "size": [32, 32],
        "mean": [0.5], "std": [0.5], "channels": 1, "confidence": 0.5, "validation_share": 0.1}}]}))
    put("tasks_file", "endpoint", """tasks:
- {name: t, type: captioning, metric: rouge_l, max_answer_tokens: 8,
   teacher: {kind: endpoint, url: "http://127.0.0.1:1/v1", model: m, inputs: a.jsonl}}
""")
    put("tasks_file", "anchors", "a: &a [x, x]\nb: [*a, *a]\n")

    edge = "\r\n--b\r\nContent-Disposition: form-data; "
    put("multipart", "form", "multipart/form-data; boundary=b", (
        f'{edge}name="lora_name"\r\n\r\nx{edge}name="adapter_config.json"; filename="a.json"\r\n'
        "Content-Type: application/json\r\n\r\n{}\r\n--b--\r\n").removeprefix("\r\n"))
    put("multipart", "quoted", "multipart/form-data; boundary=\"b c\"",
        '--b c\r\nContent-Disposition: form-data; name="a\\"b"\r\n\r\n\r\n--b c\r\n--b c--')

    put("applications_file", "limits", """applications:
  - name: retrieval # a comment
    models: [cats, "2"]
    ttft: 0.5
    tpot: 1e-1
    e2e: 10
    priority: -1
    max_waiting: 64
    rate: 5
  - {name: video, models: [street]}
""")
    first = {"name": "a", "models": ["m"]}
    put("applications_file", "json", text({"applications": [first, {"name": "b", "rate": 0.5}]}))
    put("applications_file", "twice", text({"applications": [first, first | {"name": "b"}]}))

    put("hub_listing", "model", text({"sha": "c" * 40, "siblings": [
        {"rfilename": "config.json", "size": 7, "blobId": "a" * 40},
        {"rfilename": "model.safetensors", "size": 134, "blobId": "b" * 40, "lfs": {"sha256": "d" * 64, "size": 99}},
        {"rfilename": "onnx/model.onnx"}, {"rfilename": "x.gguf"}]}))
    put("hub_listing", "adapter", text({"sha": "c" * 40, "siblings": [
        {"rfilename": "adapter_config.json"}, {"rfilename": "adapter_model.safetensors"}]}))
    put("hub_listing", "index", text({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}))
    put("hub_listing", "name", "owner/name/file.gguf@refs/pr/1")

    line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "} \" {"}]}}
    put("batch_line", "chat", text(line))
    put("batch_line", "spaces", json.dumps(line | {"url": "/v1/embeddings", "body": {"input": ["a", "\N{DOG}"]}}, indent=1))
    put("batch_line", "faulty", text(line | {"method": "GET"}))
    put("csv_row", "plain", "a,b,,c")
    put("csv_row", "quoted", 'a,"b,""c""\nd",')
    put("jsonl_line", "label", b"\0" + text({"image": "a.png", "label": "cat"}).encode())
    put("jsonl_line", "labels", b"\6" + text({"images": ["a.png", "b.png"], "labels": ["cat", "dog"]}).encode())
    put("jsonl_line", "question", b"\1" + text({"image": "a.png", "prompt": "q", "answers": ["1", "2", "1"]}).encode())
    put("jsonl_line", "caption", b"\2" + text({"image": "a.png", "answer": "a \N{DOG}"}).encode())
    put("jsonl_line", "shares", b"\3" + text({"image": "a.png", "boxes": [
        {"label": "cat", "box": [0, 0.25, 0.5, 1]}, {"label": "dog", "box": [0.1, 0.1, 0.2, 0.2]}]}).encode())
    put("jsonl_line", "pixels", b"\4" + text({"image": "a.png", "label": "cat", "boxes": [[1, 2, 8, 7]],
                                             "box_unit": "pixels", "width": 10, "height": 8}).encode())
    put("jsonl_line", "own-size", b"\4" + text({"image": "a.png", "boxes": [[0, 0, 1, 1]], "box_unit": "pixels"}).encode())
    put("jsonl_line", "frames", b"\5" + text({"frames": ["a.png", "b.png"], "label": "cat"}).encode())

    annotation = {"id": 1, "image_id": 7, "category_id": 2, "bbox": [1, 2, 3, 4], "iscrowd": 0, "segmentation": [[1, 2]]}
    put("coco", "two", text({
        "info": {"year": 2017}, "images": [{"id": 7, "file_name": "a.png", "width": 10, "height": 8},
                                           {"id": 8, "file_name": "a.png"}],
        "annotations": [annotation, annotation | {"id": 2, "iscrowd": 1},
                        annotation | {"id": 3, "image_id": 8, "category_id": 1, "bbox": [0, 0, 1, 1]}],
        "categories": [{"id": 1, "name": "car"}, {"id": 2, "name": "dog", "supercategory": "animal"}]}))
    put("coco", "none", text({"images": [], "annotations": [], "categories": []}))


def model_seeds():
    decoder = {"vocab_size": 64, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "hidden_act": "silu",
               "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
               "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "float32"}
    put("model_config", "qwen2", text({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", **decoder}))
    vision = {"depth": 2, "embed_dim": 16, "hidden_size": 16, "num_heads": 2, "mlp_ratio": 2, "patch_size": 4,
              "spatial_merge_size": 2, "temporal_patch_size": 2, "in_channels": 3, "hidden_act": "quick_gelu"}
    rope = {"rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 0]}}
    put("model_config", "qwen2-vl", text({"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl",
                                          **decoder, **rope, "vision_config": vision, "image_token_id": 60, "video_token_id": 61}))
    nested = {"architectures": ["Qwen2VLForConditionalGeneration"], "vision_config": vision,
              "text_config": {**decoder, **rope, "model_type": "qwen2_vl_text"}, "image_token_id": 60, "video_token_id": 61}
    put("model_config", "qwen2-vl-nested", text(nested))
    vision25 = {**vision, "out_hidden_size": 16, "intermediate_size": 24, "window_size": 16, "fullatt_block_indexes": [1],
                "tokens_per_second": 2, "hidden_act": "silu"}
    put("model_config", "qwen2.5-vl", text({**nested, "architectures": ["Qwen2_5_VLForConditionalGeneration"],
                                            "vision_config": vision25}))
    vision3 = {**vision25, "num_position_embeddings": 16, "deepstack_visual_indexes": [0], "hidden_act": "gelu_pytorch_tanh"}
    put("model_config", "qwen3-vl", text({**nested, "architectures": ["Qwen3VLForConditionalGeneration"], "vision_config": vision3,
                                          "text_config": {**nested["text_config"], "head_dim": 4, "attention_bias": False}}))
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 64}
    put("model_config", "llama", text({"architectures": ["LlamaForCausalLM"], "model_type": "llama", **decoder, "head_dim": 4,
                                       "rope_scaling": scaling}))
    clip = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 16,
            "patch_size": 4, "hidden_act": "quick_gelu", "model_type": "clip_vision_model", "projection_dim": 8}
    put("model_config", "llava", text({"architectures": ["LlavaForConditionalGeneration"], "text_config": decoder,
                                       "vision_config": clip, "image_token_index": 60, "vision_feature_layer": -2,
                                       "vision_feature_select_strategy": "default", "projector_hidden_act": "gelu"}))
    siglip = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 16,
              "patch_size": 4, "hidden_act": "gelu_pytorch_tanh"}
    put("model_config", "smolvlm", text({"architectures": ["SmolVLMForConditionalGeneration"], "model_type": "smolvlm",
                                         "text_config": decoder, "vision_config": siglip, "image_token_id": 60, "scale_factor": 2}))
    next_llava = {"text_config": {**decoder, "model_type": "mistral"}, "vision_config": clip, "image_token_index": 60,
                  "image_grid_pinpoints": [[16, 32], [32, 32]], "vision_feature_layer": [-2, 1]}
    put("model_config", "llava-next", text({"architectures": ["LlavaNextForConditionalGeneration"], **next_llava}))
    put("model_config", "llava-onevision", text({
        "architectures": ["LlavaOnevisionForConditionalGeneration"], **next_llava, "text_config": {**decoder, "model_type": "qwen2"},
        "vision_config": {**siglip, "model_type": "siglip_vision_model", "vision_use_head": False}, "video_token_index": 61,
        "vision_aspect_ratio": "anyres_max_9"}))
    pixtral = {"text_config": {**decoder, "model_type": "mistral"}, "vision_config": {**siglip, "model_type": "pixtral", "head_dim": 8,
                                                                                   "rope_theta": 10000.0}, "image_token_index": 60}
    put("model_config", "pixtral", text({"architectures": ["LlavaForConditionalGeneration"], **pixtral,
                                         "vision_feature_select_strategy": "full", "vision_feature_layer": [-1]}))
    put("model_config", "mistral3", text({"architectures": ["Mistral3ForConditionalGeneration"], **pixtral, "spatial_merge_size": 2}))
    intern = {**siglip, "image_size": [16, 16], "norm_type": "layer_norm", "use_qk_norm": True, "attention_bias": True}
    put("model_config", "internvl", text({"architectures": ["InternVLForConditionalGeneration"], "text_config": {**decoder, "model_type": "qwen2"},
                                          "vision_config": intern, "image_token_id": 60, "downsample_ratio": 0.5, "vision_feature_layer": -1}))
    put("model_config", "internvl-chat", text({"architectures": ["InternVLChatModel"], "llm_config": {**decoder, "model_type": "qwen2"},
                                               "vision_config": {**intern, "image_size": 16, "qkv_bias": True, "qk_normalization": False},
                                               "ps_version": "v2", "select_layer": -1, "use_llm_lora": 0, "dynamic_image_size": True}))
    generation = {"do_sample": True, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "repetition_penalty": 1.05,
                  "eos_token_id": [5, 6]}
    put("generation_config", "all", text(generation), text({"eos_token_id": 7}))
    put("generation_config", "greedy", text({"do_sample": False}), text({"text_config": {"eos_token_id": [1]}}))


def integers(kind, *shape):
    dtype = {"I32": np.int32, "I64": np.int64, "I8": np.int8, "U8": np.uint8}[kind]
    return kind, list(shape), (np.arange(np.prod(shape)) * 77 % 120).astype(dtype).tobytes()


def quantised_seeds():
    def compressed(file_format, **weights):
        return {"quant_method": "compressed-tensors", "format": file_format, "quantization_status": "compressed",
                "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", **weights}}},
                "ignore": ["lm_head", "re:visual.*"]}

    def tensors(**parts):
        return safetensors({"model.a." + part: value for part, value in parts.items()})
    shape = "I64", [2], np.array([8, 16], np.int64).tobytes()
    groups = {"strategy": "group", "group_size": 8}
    put("quantised", "words", text(compressed("pack-quantized", **groups)),
        tensors(weight_packed=integers("I32", 8, 2), weight_scale=halves(8, 2), weight_shape=shape))
    put("quantised", "zero-points", text(compressed("pack-quantized", symmetric=False, **groups)),
        tensors(weight_packed=integers("I32", 8, 2), weight_scale=halves(8, 2), weight_shape=shape,
                weight_zero_point=integers("I32", 1, 2), weight_g_idx=("I32", [16], np.array([0, 1] * 8, np.int32).tobytes())))
    put("quantised", "bytes", text(compressed("int-quantized", num_bits=8, strategy="channel")),
        tensors(weight=integers("I8", 8, 16), weight_scale=floats(8, 1)))
    put("quantised", "gptq", text({"quant_method": "gptq", "bits": 4, "group_size": 8, "desc_act": True}),
        tensors(qweight=integers("I32", 2, 8), qzeros=integers("I32", 2, 1), scales=halves(2, 8), g_idx=integers("I32", 16)))
    put("quantised", "gptq-rules", text({"quant_method": "gptq", "bits": 4, "group_size": -1, "checkpoint_format": "gptq_v2",
                                         "dynamic": {"-:lm_head": {}, "+:model.*": {"bits": 8}}}),
        tensors(qweight=integers("I32", 4, 8), qzeros=integers("I32", 1, 2), scales=halves(1, 8)))
    put("quantised", "awq", text({"quant_method": "awq", "bits": 4, "group_size": 8, "modules_to_not_convert": ["visual"]}),
        tensors(qweight=integers("I32", 16, 1), qzeros=integers("I32", 2, 1), scales=halves(2, 8)))
    eight = "F8_E4M3", [8, 16], bytes(i * 7 % 126 for i in range(128))
    put("quantised", "fp8", text({"quant_method": "fp8", "weight_block_size": [4, 8]}),
        tensors(weight=eight, weight_scale_inv=floats(2, 2)))
    put("quantised", "rows", text({"quant_method": "bitsandbytes", "load_in_8bit": True}),
        tensors(weight=integers("I8", 8, 16), SCB=floats(8), weight_format=integers("U8")))
    put("quantised", "plain", text({"quant_method": "awq"}), tensors(weight=floats(8, 16)))


def main():
    for make in (safetensors_seeds, gguf_seeds, gguf_tokenizer_seeds, adapter_seeds, regex_seeds, tokenizer_seeds, template_seeds, image_seeds,
                 video_seeds, settings_seeds, url_seeds, request_seeds, tool_call_seeds, task_seeds, model_seeds, quantised_seeds):
        make()
    files = [path for path in ROOT.rglob("*") if path.is_file()]
    print(f"{len(files)} seeds, {sum(path.stat().st_size for path in files)} bytes")


if __name__ == "__main__":
    main()
