"""GGUF files must give the same answers as transformers and PEFT in fp32 on the decoded weights.

The files are written, and decoded for the reference, by the package gguf (helpers/gguf_files.py); super-blocks, which it can
only decode, contain random integers.
"""

import json
import shutil
import subprocess

import numpy as np
import pytest
from tokenizers import Tokenizer, pre_tokenizers

import checkpoints
import families
import gguf_files
import newest
import tokenizer_parity
from adapted_case import AdaptedCase
from checkpoints import save_adapter
from programs import REPOSITORY, Engine, EngineError, find_program
from reference import Reference, expect_same, logprob_rows
from serving import ServedProcess
from test_training import PARITY, request_of, samples, train
from wide import EVERYTHING

LLAMA3, LLAMA2, QWEN2, QWEN3, GEMMA = families.LLAMA3, families.LLAMA2, families.QWEN2, families.QWEN3, families.GEMMA3_TEXT


def kinds(linears, embedding="F32", **others):
    """Tensor types by the ends of their names."""
    def kind_of(name):
        for part, kind in others.items():
            if f"{part}." in name:
                return kind
        return embedding if name.startswith(("token_embd", "output.")) else linears
    return kind_of


# By name: the configuration and the types. Every type occurs once in a linear, and once in the embedding or output layer.
CASES = {
    "llama3-q4_0": (lambda: checkpoints.llama(LLAMA3, 64, 4, 2, 3, 96, False, rope_scaling=checkpoints.LLAMA3_ROPE),
                    kinds("Q4_0", "Q8_0", output="Q5_0")),
    "llama2-biased-f16": (lambda: checkpoints.llama(LLAMA2, 48, 3, 3, 2, 61, True, attention_bias=True, mlp_bias=True,
                                                    rope_scaling={"rope_type": "linear", "factor": 2.5}), kinds("F16", "F16")),
    "llama3-k": (lambda: checkpoints.llama(LLAMA3, 256, 4, 2, 2, 512, False),
                 kinds("Q4_K", "Q4_K", attn_v="Q6_K", ffn_down="Q6_K", ffn_up="Q5_K", output="Q6_K")),
    "llama3-mixed": (lambda: checkpoints.llama(LLAMA3, 256, 4, 2, 1, 512, False),
                     kinds("IQ4_XS", "Q3_K", attn_v="IQ4_NL", ffn_down="Q3_K", ffn_up="Q2_K", output="Q6_K")),
    "qwen2-q4_1-tied": (lambda: checkpoints.qwen2(64, 4, 2, 3, 96, True), kinds("Q4_1", "Q8_0")),
    "qwen2-bf16": (lambda: checkpoints.qwen2(48, 6, 2, 2, 37, False), kinds("BF16", "BF16", ffn_up="F32")),
    "qwen3-q5": (lambda: checkpoints.qwen3(64, 4, 2, 2, 96, True, head_dim=32, rope_scaling={
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}), kinds("Q5_0", "Q5_1", ffn_gate="Q5_1")),
    "gemma3-q8_0": (lambda: checkpoints.gemma3_text(
        GEMMA, 64, 4, 2, 7, 96, True, head_dim=16, query_pre_attn_scalar=16, sliding_window=9, rope_local_base_freq=10000.0,
        rope_scaling={"rope_type": "linear", "factor": 4.0}), kinds("Q8_0", "Q4_0")),
}
IN_EVERY_MODE = ["llama3-q4_0", "llama3-k"]
TEXTS = [[{"role": "user", "content": "What is in this picture?"}], [{"role": "user", "content": "Ελλάδα 123 don't"}]]
ADAPTERS = [dict(rank=3), dict(rank=8, targets="all-linear", exclude_modules=["lm_head"]), dict(rank=4, use_dora=True)]
USES = [[], [(0, 1)], [(1, 1)], [(1, 0.5)], [(0, 1), (1, -1)], [(1, 1)], [], [(2, 1)]]


def add_tokenizer(family):
    """Adds a family's tokenizer. For SentencePiece families it gets scores, which lead to different merges from the reference's."""
    data = json.loads(family.tokenizer().to_str())

    def add(writer):
        pre = {LLAMA3: "llama-bpe", QWEN2: "qwen2", QWEN3: "qwen2"}.get(family)
        scores = {token: -float(i) for i, token in enumerate(data["model"]["vocab"])}
        gguf_files.add_tokenizer(writer, data, pre, scores=scores)
        if family.bos:
            writer.add_bos_token_id(family.special_id(family.bos))
    return add


class Case(AdaptedCase):
    """A GGUF file, a folder of the same model with decoded weights, and adapters for it."""

    def __init__(self, name, root):
        config, kind_of = CASES[name]
        config = config()
        self.family = families.family_of(config)
        model = self.model = checkpoints.randomise(self.family.kind(config), sum(map(ord, name)))
        root.mkdir(exist_ok=True)
        self.folder = self.file = gguf_files.write_model(root / "model.gguf", model, kind_of, add_tokenizer(self.family))
        (root / "decoded").mkdir()
        self.reference = Reference(checkpoints.save_model(model, root / "decoded"))
        self.adapters = {f"a{i}": save_adapter(model, root / f"a{i}", 900 + i, **settings) for i, settings in enumerate(ADAPTERS)}
        for adapter, path in self.adapters.items():
            self.reference.load_adapter(adapter, path)
        self.vocabulary = config.vocab_size
        self.requests = [self.request(i, uses) for i, uses in enumerate(USES)]

    def request(self, i, uses):
        sampling = {"max_tokens": 12, "ignore_eos": True, "temperature": 0, "logprobs": self.vocabulary}
        # The reference's tokenizer merges differently from a vocabulary with scores.
        byte_level = self.family in (LLAMA3, QWEN2, QWEN3)
        prompt = {"messages": TEXTS[i % 2]} if byte_level else {"tokens": [5 + 7 * i + 3 * j for j in range(25)]}
        return prompt | {"sampling": sampling, "adapters": [{"name": f"a{a}", "scale": scale} for a, scale in uses]}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    made = {}

    def case(name):
        if name not in made:
            made[name] = Case(name, tmp_path_factory.mktemp(name))
        return made[name]
    return case


@pytest.mark.parametrize("name", CASES)
def test_base_and_adapters_in_one_batch_equal_reference(cases, name):
    cases(name).expect_same()


@pytest.mark.parametrize("mode", ["merged", "mixture"])
@pytest.mark.parametrize("name", IN_EVERY_MODE)
def test_merged_adapter_equals_reference(cases, name, mode):
    cases(name).expect_same(mode=mode)


@pytest.mark.parametrize("name", IN_EVERY_MODE)
def test_two_ranks_equal_reference(cases, name):
    cases(name).expect_same(tensor_parallel_size=2)


def test_reference_kernels_give_the_same_answers(cases):
    cases("llama3-k").expect_same(kernels="reference")


def test_folder_with_one_gguf_file_is_served(cases, tmp_path):
    case = cases("qwen2-q4_1-tied")
    shutil.copy(case.file, tmp_path / "some-Q4_1.gguf")
    with Engine(tmp_path) as engine:
        expect_same(case.reference, case.requests[0], engine.one(case.requests[0]), tolerance=1e-3)


def split_in_two(file, folder):
    """The parts that llama-gguf-split writes: the metadata is in the first."""
    reader, paths = gguf_files.gguf.GGUFReader(file), [folder / f"part-{i:05}-of-00002.gguf" for i in (1, 2)]
    half = len(reader.tensors) // 2
    for number, (path, tensors) in enumerate(zip(paths, (reader.tensors[:half], reader.tensors[half:]), strict=True)):
        writer = gguf_files.gguf.GGUFWriter(str(path), "llama")
        for field in reader.fields.values() if number == 0 else ():
            if not field.name.startswith("GGUF.") and field.name != "general.architecture":
                writer.add_key_value(field.name, field.contents(), field.types[0], field.types[-1] if len(field.types) > 1 else None)
        for key, value in (("split.no", number), ("split.count", 2)):
            writer.add_uint16(key, value)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for tensor in tensors:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
        gguf_files.finish(writer)
    return paths


def test_split_file_equals_reference(cases, tmp_path):
    case = cases("llama3-q4_0")
    first, second = split_in_two(case.file, tmp_path)
    with Engine(tmp_path) as engine:
        expect_same(case.reference, case.requests[0], engine.one(case.requests[0]), tolerance=1e-3)
    assert "is part 2 of 2 of a model: give the first part, " + str(first) in refusal(second)
    second.rename(tmp_path / "elsewhere")
    assert f"{second} is missing, one of the 2 parts of the model in {first}" in refusal(first)


def test_rounded_inputs_stay_close(cases):
    """With adapters and rounded inputs: close to the unrounded answer, but not equal."""
    case = cases("llama3-k")
    with Engine(case.file, activations="int8") as engine:
        row = logprob_rows(engine.one(case.requests[0]))[0]
    away = (row - case.reference.forward(case.requests[0])[1][-1].log_softmax(-1)).abs().max().item()
    assert 1e-3 < away < 0.5


def test_training_equals_that_of_the_decoded_weights(cases, tmp_path):
    case = cases("llama3-k")
    made, init = samples(case.reference), save_adapter(case.model, tmp_path / "init", 11, rank=4)
    answers = [train(request_of(model, init, tmp_path / name, made, PARITY | {"steps": 3}))
               for name, model in (("file", case.file), ("decoded", case.file.parent / "decoded"))]
    assert answers[0]["losses"] == pytest.approx(answers[1]["losses"], rel=1e-6)


def refusal(path, *arguments):
    done = subprocess.run([find_program("valora"), "inspect", str(path), *arguments], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stdout + done.stderr


def rewritten(case, path, old, new):
    """A copy in which a metadata text is replaced by another one of equal length."""
    content = case.file.read_bytes()
    assert content.count(old) >= 1 and len(old) == len(new)
    path.write_bytes(content.replace(old, new))
    return path


def test_unsupported_file_is_refused_by_name(cases, tmp_path):
    case, path = cases("llama3-q4_0"), tmp_path / "x.gguf"
    kind = b"general.architecture\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00"
    rewritten(case, path, kind + b"llama", kind + b"bloom")
    assert '"general.architecture" is "bloom", which is not supported, only llama, mistral3, qwen2, qwen2vl, qwen3, qwen3vl, gemma3' in refusal(path)
    rewritten(case, path, b"llama.attention.key_length", b"llama.attention.kex_length")
    assert '"llama.attention.kex_length" is not supported' in refusal(path)
    rewritten(case, path, b"blk.1.attn_q.weight", b"blk.1.attn_z.weight")
    assert "has no tensor model.layers.1.self_attn.q_proj.weight" in refusal(path)
    path.write_bytes(case.file.read_bytes()[:-4000])
    assert "ends beyond the file's" in refusal(path)
    with pytest.raises(EngineError, match=r"the weights are quantised already \(GGUF\); leave out --quantization"):
        Engine(case.file, quantization="int8")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    assert "has no config.json, but GGUF files: give one of them" in refusal(tmp_path)


@pytest.mark.parametrize("settings, message", [
    ({"split.count": 3}, "is the first of 3 files of a model, but its name does not end in -00001-of-00003.gguf"),
    ({"split.count": 3, "split.no": 1}, "is part 2 of 3 of a model: give the first part"),
    ({"general.type": "mmproj"}, r"is the vision part of a model (mmproj): give the language model's file as the model"),
    ({"general.type": "adapter"}, "is a LoRA adapter: give a folder of PEFT as the adapter"),
    ({"llama.expert_count": 8}, '"llama.expert_count" is not supported with this value'),
], ids=str)
def test_model_parts_are_refused(settings, message, tmp_path):
    writer = gguf_files.gguf.GGUFWriter(str(tmp_path / "x.gguf"), "llama")
    for key, value in settings.items():
        (writer.add_string if isinstance(value, str) else writer.add_uint32)(key, value)
    gguf_files.finish(writer)
    assert message in refusal(tmp_path / "x.gguf")


def test_quantised_file_is_not_quantised_again(cases, tmp_path):
    done = subprocess.run([find_program("valora"), "quantize", str(cases("qwen2-bf16").file), "--output", str(tmp_path / "out"),
                           "--scheme", "W8A16"], capture_output=True, text=True)
    assert done.returncode != 0 and "is a GGUF file: give the Hugging Face folder" in done.stderr


def test_inspect_describes_the_file(cases):
    done = subprocess.run([find_program("valora"), "inspect", str(cases("llama3-k").file)], capture_output=True, text=True, check=True)
    assert "LlamaForCausalLM" in done.stdout and "on disk in Q4_K and Q5_K and Q6_K" in done.stdout
    assert "linears of Q4_K and Q5_K and Q6_K (GGUF), served in integers" in done.stdout


HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
          "Q2_K": [80, 82], "Q3_K": [108], "IQ4_NL": [0], "IQ4_XS": [0]}


@pytest.mark.parametrize("name", HALVES)
def test_unit_test_vectors_match_the_gguf_package(name):
    """gguf_blocks_test.cc compares each type bit for bit."""
    kind = gguf_files.gguf.GGMLQuantizationType[name]
    size, state, made = gguf_files.gguf.GGML_QUANT_SIZES[kind][1], 1, bytearray()
    for _ in range(6 * size):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        made.append(state >> 56)
    for block in range(6):
        for k, at in enumerate(HALVES[name]):
            made[block * size + at:block * size + at + 2] = (0x2C00 + 37 * block + 11 * k).to_bytes(2, "little")
    values = gguf_files.dequantize(np.frombuffer(bytes(made), np.uint8).reshape(2, -1), kind) + np.float32(0)
    digest = 0xCBF29CE484222325
    for byte in values.astype("<f4").tobytes():
        digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    assert f"0x{digest:x}" in (REPOSITORY / "src/models/quantised/gguf_blocks_test.cc").read_text()


# ---- a published file: SmolLM2-135M-Instruct in Q4_1 and Q8_0 ----

CHATS = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "system", "content": "You answer in one short sentence."}, {"role": "user", "content": "Why is the sky blue?"}],
    [{"role": "user", "content": "Übersetze ins Englische: „Guten Morgen, Zoë“ 🌞 日本語, 1984"}],
]


@pytest.fixture(scope="module")
def published(smollm2):
    server = ServedProcess("--model", newest.smollm2_file(), "--served-model-name", "m", "--dtype", "float32", "--max-model-len", "1024",
                           "--pool-memory", "512M")
    yield server
    server.stop()


@pytest.mark.skipif(not EVERYTHING, reason="transformers reads the file for a minute: make conformance runs it")
def test_published_file_equals_transformers(published, tmp_path):
    requests, answers = [], []
    for chat in CHATS:
        got = published.post("/v1/chat/completions", {"model": "m", "messages": chat, "max_tokens": 24, "temperature": 0, "logprobs": True,
                                                      "return_token_ids": True})
        choice = got["choices"][0]
        answers.append((choice["token_ids"], [token["logprob"] for token in choice["logprobs"]["content"]]))
        requests.append({"messages": chat, "prompt_token_ids": got.get("prompt_token_ids") or choice["prompt_token_ids"],
                         "token_ids": choice["token_ids"]})
    (tmp_path / "requests.json").write_text(json.dumps(requests))
    expected = json.loads(newest.run("parity/gguf_answers.py", newest.smollm2_file(), tmp_path / "requests.json"))
    for request, (tokens, logprobs), answer in zip(requests, answers, expected, strict=True):
        assert tokens == answer["greedy"]
        assert max(abs(a - b) for a, b in zip(logprobs, answer["logprobs"], strict=True)) <= 1e-3
        if "1984" not in str(request["messages"]):  # transformers does not split its digits
            assert request["prompt_token_ids"] == answer["prompt_token_ids"]


def test_published_tokenizer_equals_transformers(smollm2, published):
    """Equals the folder's tokenizer, which transformers made from this file, except for digits: SmolLM's tokenizer
    splits each one off."""
    reference = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))
    texts = tokenizer_parity.corpus(1500, ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>"], seed=70)
    without = [text for text in texts if not any(c.isnumeric() for c in text)]
    assert len(without) > 500

    def ask(some):
        asked = [{"text": text, "add_special_tokens": True} for text in some]
        return [answer["ids"] for answer in tokenizer_parity.ask(newest.smollm2_file(), asked)]
    assert ask(without) == [reference.encode(text).ids for text in without]
    reference.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False)])
    assert ask(texts) == [reference.encode(text).ids for text in texts]
