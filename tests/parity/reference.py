"""Results of transformers and PEFT for a request: prompt ids, pixels, and logits after every token."""

import contextlib

import peft
import torch
import transformers

import families

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()


NO_MEDIA_TOKENS = families.QWEN2_VL.no_media_tokens()  # for the Qwen models


class Prompt:
    """Token ids with expanded placeholders, and the inputs of the vision tower."""

    def __init__(self, ids, inputs=None):
        self.ids = ids
        self.inputs = inputs or {}


class Reference:
    def __init__(self, folder, dtype=torch.float32, attention="eager"):
        config = transformers.AutoConfig.from_pretrained(folder)
        self.family = families.family_of(config)
        self.model = self.base = self.family.kind.from_pretrained(folder, dtype=dtype, attn_implementation=attention).eval()
        self.processor = self.family.load_processor(folder) if self.family.has_images else None
        self.family.mend(self.model)
        for module in self.model.modules():  # release 5 groups products of experts by default, but not of widths that are odd
            if hasattr(module, "_is_expert_parallel"):
                module.config._experts_implementation = "eager"
        self.dtype = dtype

    def load_adapter(self, name, folder):
        if self.model is self.base:
            self.model = peft.PeftModel.from_pretrained(self.base, folder, adapter_name=name).eval()
        else:
            self.model.load_adapter(folder, adapter_name=name)

    @contextlib.contextmanager
    def adapted(self, uses):
        """The model with the sum of the adapters [{"name", "scale"}]; each scale multiplies the adapter's own."""
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
        if "prompt" in request:
            return Prompt(self.family.tokenizer().encode(request["prompt"]).ids)
        return Prompt(*self.family.prompt(request["messages"], request.get("add_generation_prompt", True), self.processor,
                                          request.get("fps")))

    @torch.no_grad()
    def forward(self, request, continuation=()):
        """(logits, last hidden states) of the prompt and the tokens after it, [T, …] each."""
        prompt = self.prompt(request)
        ids = torch.tensor([prompt.ids + list(continuation)])
        with self.adapted(request.get("adapters", [])):
            out = self.base(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False,
                            output_hidden_states=True, **self.family.token_types(ids), **self.family.length_inputs(prompt.ids),
                            **prompt.inputs)
        return prompt, out.logits[0].float(), out.hidden_states[-1][0].float()

    def next_token_logits(self, request, tokens):
        """Logits before each of the tokens, [len(tokens), vocab]; the reference is forced to follow these
        tokens."""
        prompt, logits, _ = self.forward(request, tokens[:-1])
        return prompt, logits[len(prompt.ids) - 1:]

    def greedy(self, request, count):
        """The tokens of transformers' own generate()."""
        return self.generated(request, count)[0]

    @torch.no_grad()
    def generated(self, request, count):
        """(tokens, logits before each of them) from transformers' own generate(), with its
        cache."""
        prompt = self.prompt(request)
        ids = torch.tensor([prompt.ids])
        with self.adapted(request.get("adapters", [])):
            out = self.base.generate(input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False,
                                     min_new_tokens=count, max_new_tokens=count, eos_token_id=None, pad_token_id=0,
                                     suppress_tokens=[token for token, _ in self.family.no_media_tokens()] or None,
                                     output_logits=True, return_dict_in_generate=True,
                                     **self.family.token_types(ids), **prompt.inputs)
        return out.sequences[0, len(prompt.ids):].tolist(), torch.cat(out.logits).float()


def biased(request, logits):
    logits = logits.clone()
    for token, bias in request["sampling"].get("logit_bias", []):
        logits[:, token] += bias
    return logits


def logprob_rows(answer, choice=0):
    """The full log-softmax at each step, [tokens, vocab], of an answer with log probabilities for the whole
    vocabulary."""
    tokens = answer["choices"][choice]["tokens"]
    rows = torch.full((len(tokens), len(tokens[0]["top_ids"])), float("nan"))
    for row, token in zip(rows, tokens):
        row[token["top_ids"]] = torch.tensor(token["top_logprobs"])
    return rows


def expect_same(reference, request, answer, tolerance=1e-4):
    """Compares prompt ids, every greedy choice and the full distribution at every step, in fp32. Returns
    the distance."""
    tokens = [token["id"] for token in answer["choices"][0]["tokens"]]
    prompt, logits = reference.next_token_logits(request, tokens)
    assert answer["prompt_token_ids"] == prompt.ids
    # Each choice equals the reference's after the same tokens; by induction, so does the whole greedy answer.
    # If two tokens tie within fp32 rounding, either is correct.
    choices = biased(request, logits)
    behind = choices.amax(-1) - choices.gather(-1, torch.tensor(tokens)[:, None])[:, 0]
    assert behind.max() <= 2e-5, (tokens, choices.argmax(-1).tolist())
    distance = (logprob_rows(answer) - logits.log_softmax(-1)).abs().max().item()
    assert distance <= tolerance, distance
    return distance
