"""A GGUF model with its vision part (mmproj) must give the same answers as transformers and PEFT in fp32 on the decoded weights.

The files are written by helpers/gguf_vision.py with the names of the package gguf.
"""

import json
import shutil
import subprocess

import pytest
import transformers

import checkpoints
import families
import gguf_files
import gguf_vision
from adapted_case import AdaptedCase
from checkpoints import save_adapter
from pictures import picture
from programs import Engine, EngineError, find_program
from reference import Reference, expect_same, logprob_rows

PRE = {families.Qwen: "qwen2", families.Idefics3: "llama-bpe", families.SmolVLM: "smollm"}

TOWER = dict(hidden_size=32, intermediate_size=64)
# By name: the configuration, the types of the decoder's and of the tower's linears.
CASES = {
    "qwen2-vl": (lambda: checkpoints.qwen2_vl(64, 4, 2, 2, 96, True, 8, 2, 32, 2, 3), "F16", "F16"),
    "qwen2.5-vl": (lambda: checkpoints.qwen2_5_vl(64, 4, 2, 2, 96, False, 7, 2, 32, 2, 3, 28, [1]), "Q4_0", "Q8_0"),
    "qwen3-vl": (lambda: checkpoints.qwen3_vl((64, 4, 2, 2, 96, True), 16, [2, 3, 3], TOWER | dict(
        depth=4, num_heads=2, num_position_embeddings=49, deepstack_visual_indexes=[0, 2]), 8, 2), "F16", "Q8_0"),
    "smolvlm": (lambda: checkpoints.idefics3(families.SMOLVLM, (64, 4, 2, 2, 96, True), TOWER | dict(
        num_hidden_layers=2, image_size=32, patch_size=8), 2), "F16", "Q8_0"),
    "idefics3": (lambda: checkpoints.idefics3(families.IDEFICS3, (64, 4, 2, 2, 96, False), TOWER | dict(
        num_hidden_layers=3, image_size=28, patch_size=7), 4, rope_scaling=checkpoints.LLAMA3_ROPE), "Q8_0", "F16"),
    "gemma3": (lambda: checkpoints.gemma3((64, 4, 2, 4, 96, True), TOWER | dict(image_size=56, patch_size=7), 4, head_dim=16,
                                          query_pre_attn_scalar=16, sliding_window=17, sliding_window_pattern=6), "F16", "F16"),
    "llava": (lambda: checkpoints.llava((64, 4, 2, 2, 96, False), TOWER | dict(image_size=28, patch_size=7)), "Q4_0", "F16"),
    "internvl": (lambda: checkpoints.internvl(
        checkpoints.internvl_text("Qwen2", 64, 4, 2, 2, 96, True, use_sliding_window=False),
        TOWER | dict(image_size=[28, 28], patch_size=[7, 7], attention_bias=True)), "F16", "Q8_0"),
    "pixtral": (lambda: checkpoints.pixtral(
        transformers.LlavaConfig, (64, 4, 2, 2, 96, False), TOWER | dict(image_size=72, patch_size=8, num_hidden_layers=3), 16,
        vision_feature_layer=-1, vision_feature_select_strategy="full"), "F16", "F16"),
    "mistral3": (lambda: checkpoints.pixtral(
        transformers.Mistral3Config, (64, 4, 2, 2, 96, True), TOWER | dict(
            image_size=84, patch_size=6, num_hidden_layers=3, hidden_act="silu"), 16, spatial_merge_size=2), "Q8_0", "F16"),
}
MESSAGES = [
    [{"role": "user", "content": "Ελλάδα 123 don't"}],
    [{"role": "user", "content": ["See ", picture(90, 131, 43), "what is it?"]}],
    [{"role": "user", "content": [picture(91, 33, 120), picture(92, 61, 60), "what changed?"]}],
]
ADAPTERS = [dict(rank=3), dict(rank=8, targets="all-linear", exclude_modules=["lm_head"])]
USES = [[], [(0, 1)], [(1, 1)], [(1, 0.5)], [(0, 1), (1, -1)], [], [(1, 1)]]


def add_tokenizer(family, drop=()):
    """Adds a family's tokenizer. drop: tokens that the converter leaves out."""
    data = json.loads(family.tokenizer().to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if token["content"] not in drop]

    def add(writer):
        pre = next((pre for kind, pre in PRE.items() if type(family) is kind), None)
        pre = pre or ("qwen2" if isinstance(family, families.Qwen) else None)
        scores = {token: -float(i) for i, token in enumerate(data["model"]["vocab"])}
        gguf_files.add_tokenizer(writer, data, pre, scores=scores)
        if family.bos:
            writer.add_bos_token_id(family.special_id(family.bos))
    return add


class Case(AdaptedCase):
    """A GGUF model with its vision part, a folder of the decoded model, and adapters for it."""

    def __init__(self, name, root):
        config, linears, tower = CASES[name]
        config = config()
        family = self.family = families.family_of(config)
        model = self.model = checkpoints.randomise(family.kind(config), sum(map(ord, name)))
        decoded, files = root / "decoded", root / "files"
        for folder in (decoded, files):
            folder.mkdir(parents=True)
        checkpoints.save_model(model, decoded)
        settings = gguf_vision.settings_of_folder(decoded, config)
        self.folder = files / "model.gguf"
        text = config.text_config
        text.eos_token_id = family.special_id(family.eos)
        gguf_files.write_language(self.folder, text, dict(gguf_vision.language_tensors(model)), gguf_vision.architecture_of(config),
                                  lambda stored: "F32" if stored.startswith(("token_embd", "output.")) else linears, add_tokenizer(family),
                                  deepstack=len(getattr(config.vision_config, "deepstack_visual_indexes", [])))
        model.tie_weights()
        row_end = family.special_id("[IMG_BREAK]") if name in ("pixtral", "mistral3") else None
        self.mmproj = gguf_vision.write_mmproj(files / "mmproj-model-f16.gguf", model, tower, settings, row_end=row_end)
        model.save_pretrained(decoded)
        self.reference_folder, self.reference = decoded, Reference(decoded)
        self.adapters = {f"a{i}": save_adapter(model, root / f"a{i}", 900 + i, **settings) for i, settings in enumerate(ADAPTERS)}
        for adapter, path in self.adapters.items():
            self.reference.load_adapter(adapter, path)
        self.vocabulary = text.vocab_size
        self.requests = [self.request(i, uses) for i, uses in enumerate(USES)]

    def request(self, i, uses):
        sampling = {"max_tokens": 8, "ignore_eos": True, "temperature": 0, "logprobs": self.vocabulary,
                    "logit_bias": self.family.no_media_tokens()}
        return {"messages": MESSAGES[i % 3], "sampling": sampling, "adapters": [{"name": f"a{a}", "scale": scale} for a, scale in uses]}


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


def test_placeholder_without_an_embedding(cases, tmp_path):
    """Converters leave out tokens that have no row in tokenizer.model: LLaVA's <image>, Gemma 3's <image_soft_token>. The placeholder then
    follows the vocabulary."""
    case = cases("llava")
    text, rows = case.model.config.text_config, case.family.special_id("<image>")
    gguf_files.write_language(tmp_path / "model.gguf", text, dict(gguf_vision.language_tensors(case.model)), gguf_files.gguf.MODEL_ARCH.LLAMA,
                              lambda stored: "F32", add_tokenizer(case.family, drop=("<image>", "<pad>")), rows=rows)
    request = case.requests[1] | {"adapters": []}
    request["sampling"] = request["sampling"] | {"logit_bias": [[token, -1e4] for token in range(rows, text.vocab_size)]}
    with Engine(case.folder) as engine:
        whole = engine.one(request)
    request["sampling"] = request["sampling"] | {"logit_bias": [], "logprobs": rows}
    with Engine(tmp_path / "model.gguf", mmproj=str(case.mmproj)) as engine:
        cut = engine.one(request)
    assert cut["prompt_token_ids"] == whole["prompt_token_ids"] and rows in cut["prompt_token_ids"]
    expected = logprob_rows(whole)[:, :rows].log_softmax(-1)
    assert (logprob_rows(cut) - expected).abs().max() < 1e-4


def refusal(folder, **options):
    with pytest.raises(EngineError) as error:
        Engine(folder, **options).close()
    return str(error.value)


def test_picture_without_vision_part_names_the_option(cases):
    case = cases("qwen2.5-vl")
    with Engine(case.folder, mmproj="none") as engine:
        with pytest.raises(EngineError, match=r"this model does not support images; .*model.gguf holds text alone: start with --mmproj FILE"):
            engine.one(case.requests[1] | {"adapters": []})
        expect_same(case.reference, case.requests[0], engine.one(case.requests[0]), tolerance=1e-3)


def test_other_vision_parts_are_refused_by_name(cases, tmp_path):
    case = cases("qwen2.5-vl")
    smaller = gguf_vision.write_mmproj(tmp_path / "smaller.gguf", checkpoints.make_model("vl25-windows"), "F16", {
        "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "min_pixels": 1, "max_pixels": 2})
    assert "smaller.gguf is the vision part of another model: it gives embeddings of 48 values, and those of" in refusal(
        case.folder, mmproj=str(smaller))
    assert "has the projector gemma3, which is for language models of the architecture gemma3, and" in refusal(
        case.folder, mmproj=str(cases("gemma3").mmproj))
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(case.mmproj.read_bytes()[:-5000])
    assert "cut.gguf: tensor " in (message := refusal(case.folder, mmproj=str(cut))) and "ends beyond the file's" in message
    other = tmp_path / "other.gguf"
    other.write_bytes(case.mmproj.read_bytes().replace(b"qwen2.5vl_merger", b"kimivl_projectors"[:16]))
    assert '"clip.projector_type" is "kimivl_projector", which is not supported, only qwen2vl_merger' in refusal(case.folder, mmproj=str(other))
    assert "not clip: the file is not the vision part of a model" in refusal(case.folder, mmproj=str(case.folder))
    assert "is the vision part of a model (mmproj): give the language model's file as the model" in refusal(case.mmproj)
    assert f"--mmproj is for models in GGUF files, and {case.reference_folder} is none" in refusal(
        case.reference_folder, mmproj=str(case.mmproj))


def test_vision_part_is_chosen_by_its_name(cases, tmp_path):
    """Of several with equal names but for the type, F16 is taken before BF16."""
    case = cases("smolvlm")
    shutil.copy(case.folder, tmp_path / "m-Q4_K_M.gguf")
    shutil.copy(case.mmproj, tmp_path / "m-mmproj-F16.gguf")
    (tmp_path / "m-mmproj-BF16.gguf").write_bytes(b"GGUF")
    with Engine(tmp_path) as engine:
        expect_same(case.reference, case.requests[1] | {"adapters": []}, engine.one(case.requests[1] | {"adapters": []}), tolerance=1e-3)
    shutil.copy(case.mmproj, tmp_path / "other-mmproj-F16.gguf")
    assert "is next to several files that may be its vision part, such as m-mmproj-F16.gguf: name one with --mmproj FILE" in refusal(tmp_path)


@pytest.mark.parametrize("mode, options", [("merged", {}), ("mixture", {}), ("unmerged", {"tensor_parallel_size": 2})])
def test_joined_linears_of_the_tower_in_every_mode(cases, mode, options):
    """Queries, keys and values of the tower are three tensors in the file, and one linear for adapters."""
    cases("qwen2-vl").expect_same(mode=mode, **options)


def test_inspect_describes_the_pair(cases):
    case = cases("qwen3-vl")
    done = subprocess.run([find_program("valora"), "inspect", str(case.folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "Qwen3VLForConditionalGeneration" in done.stdout and "text, images, videos" in done.stdout and "is not used" not in done.stdout
    done = subprocess.run([find_program("valora"), "inspect", str(case.folder), "--mmproj", "none"], capture_output=True, text=True)
    assert done.returncode == 0 and "Qwen3ForCausalLM" in done.stdout
