"""What transformers and PEFT make of the same request: prompt ids, pixels, and logits after every token."""

import contextlib

import numpy as np
import peft
import torch
import transformers
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

import checkpoints
import pictures

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()


# A random model may utter them; the reference takes them for media of the prompt then.
MEDIA_TOKENS = [checkpoints.special_id(name) for name in ("vision_start", "image_pad", "video_pad")]
NO_MEDIA_TOKENS = [[token, -1e4] for token in MEDIA_TOKENS]  # a logit_bias


def render(messages, add_generation_prompt=True):
    """Qwen2-VL's chat format (test_tokenizer.py compares the served one with the published template)."""
    turns = [] if messages[0]["role"] == "system" else [("system", "You are a helpful assistant.")]
    for message in messages:
        parts = message["content"] if isinstance(message["content"], list) else [message["content"]]
        turns.append((message["role"], "".join(
            part if isinstance(part, str) else
            f"<|vision_start|><|{'image' if 'image' in part else 'video'}_pad|><|vision_end|>" for part in parts)))
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")


def media_of(messages):
    for message in messages:
        for part in message["content"] if isinstance(message["content"], list) else []:
            if not isinstance(part, str):
                yield part


class Prompt:
    """Token ids with their placeholders expanded, and the inputs of the vision tower."""

    def __init__(self, ids, inputs=None):
        self.ids = ids
        self.inputs = inputs or {}


class Reference:
    def __init__(self, folder, dtype=torch.float32, attention="eager"):
        config = transformers.AutoConfig.from_pretrained(folder)
        self.vl = hasattr(config, "vision_config")
        kind = transformers.Qwen2VLForConditionalGeneration if self.vl else transformers.Qwen2ForCausalLM
        self.model = self.base = kind.from_pretrained(folder, dtype=dtype, attn_implementation=attention).eval()
        self.processor = Qwen2VLImageProcessor.from_pretrained(folder) if self.vl else None
        self.dtype = dtype

    def load_adapter(self, name, folder):
        if self.model is self.base:
            self.model = peft.PeftModel.from_pretrained(self.base, folder, adapter_name=name).eval()
        else:
            self.model.load_adapter(folder, adapter_name=name)

    @contextlib.contextmanager
    def adapted(self, uses):
        """The model under the sum of [{"name", "scale"}], each times its own scale."""
        if self.model is self.base:
            assert not uses
            yield
            return
        if not uses:
            with self.model.disable_adapter():
                yield
            return
        self.model.base_model.set_adapter([use["name"] for use in uses])
        layers = [m for m in self.model.modules() if isinstance(m, peft.tuners.lora.LoraLayer)]
        kept = [dict(layer.scaling) for layer in layers]
        for layer in layers:
            for use in uses:
                if use["name"] in layer.scaling:
                    layer.scaling[use["name"]] *= use.get("scale", 1)
        try:
            yield
        finally:
            for layer, scaling in zip(layers, kept):
                layer.scaling.update(scaling)

    def prompt(self, request):
        if "tokens" in request:
            return Prompt(list(request["tokens"]))
        tokenizer = checkpoints.tokenizer()
        if "prompt" in request:
            return Prompt(tokenizer.encode(request["prompt"]).ids)
        ids = tokenizer.encode(render(request["messages"], request.get("add_generation_prompt", True))).ids
        return self.expand(ids, list(media_of(request["messages"])))

    def expand(self, ids, media):
        rows = {"image": [], "video": []}
        grids = {"image": [], "video": []}
        expanded, rest = [], list(media)
        pads = {checkpoints.special_id("image_pad"): "image", checkpoints.special_id("video_pad"): "video"}
        for token in ids:
            if token not in pads:
                expanded.append(token)
                continue
            kind, = part = rest.pop(0)
            assert kind == pads[token]
            patches, grid = self.patches(pictures.decode(part[kind]))
            rows[kind].append(patches)
            grids[kind].append(grid)
            expanded += [token] * (int(np.prod(grid)) // self.processor.merge_size**2)
        inputs = {}
        for kind, pixels in (("image", "pixel_values"), ("video", "pixel_values_videos")):
            if rows[kind]:
                inputs[pixels] = torch.tensor(np.concatenate(rows[kind]), dtype=torch.float32)
                inputs[f"{kind}_grid_thw"] = torch.tensor(grids[kind])
        return Prompt(expanded, inputs)

    def patches(self, frames):
        """The image processor's patching, of one picture or of the frames of a video."""
        p = self.processor
        return p._preprocess(frames, do_resize=True, size=p.size, resample=p.resample, do_rescale=True,
                             rescale_factor=p.rescale_factor, do_normalize=True, image_mean=p.image_mean,
                             image_std=p.image_std, patch_size=p.patch_size, temporal_patch_size=p.temporal_patch_size,
                             merge_size=p.merge_size, do_convert_rgb=True)

    @torch.no_grad()
    def forward(self, request, continuation=()):
        """(logits, last hidden states) of the prompt and the tokens that follow it, [T, …] each."""
        prompt = self.prompt(request)
        ids = torch.tensor([prompt.ids + list(continuation)])
        with self.adapted(request.get("adapters", [])):
            out = self.base(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False,
                            output_hidden_states=True, **prompt.inputs)
        return prompt, out.logits[0].float(), out.hidden_states[-1][0].float()

    def next_token_logits(self, request, tokens):
        """Logits before each of the tokens, [len(tokens), vocab]: the reference follows the given tokens."""
        prompt, logits, _ = self.forward(request, tokens[:-1])
        return prompt, logits[len(prompt.ids) - 1:]

    @torch.no_grad()
    def greedy(self, request, count):
        """transformers' own generate()."""
        prompt = self.prompt(request)
        ids = torch.tensor([prompt.ids])
        with self.adapted(request.get("adapters", [])):
            out = self.base.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                     min_new_tokens=count, max_new_tokens=count, eos_token_id=None, pad_token_id=0,
                                     suppress_tokens=MEDIA_TOKENS, **prompt.inputs)
        return out[0, len(prompt.ids):].tolist()


def biased(request, logits):
    logits = logits.clone()
    for token, bias in request["sampling"].get("logit_bias", []):
        logits[:, token] += bias
    return logits


def logprob_rows(answer, choice=0):
    """The whole log-softmax at each step, [tokens, vocab], of an answer asked with all logprobs."""
    tokens = answer["choices"][choice]["tokens"]
    rows = torch.full((len(tokens), len(tokens[0]["top_ids"])), float("nan"))
    for row, token in zip(rows, tokens):
        row[token["top_ids"]] = torch.tensor(token["top_logprobs"])
    return rows


def expect_same(reference, request, answer, tolerance=1e-4):
    """fp32: prompt ids, every greedy choice and the whole distribution at every step. Returns the distance."""
    tokens = [token["id"] for token in answer["choices"][0]["tokens"]]
    prompt, logits = reference.next_token_logits(request, tokens)
    assert answer["prompt_token_ids"] == prompt.ids
    # Each choice is the reference's after the same tokens: so is, by induction, the whole greedy answer. Where two
    # tokens tie to fp32's rounding, either is right.
    choices = biased(request, logits)
    behind = choices.amax(-1) - choices.gather(-1, torch.tensor(tokens)[:, None])[:, 0]
    assert behind.max() <= 2e-5, (tokens, choices.argmax(-1).tolist())
    distance = (logprob_rows(answer) - logits.log_softmax(-1)).abs().max().item()
    assert distance <= tolerance, distance
    return distance
