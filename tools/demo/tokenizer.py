"""Trains the byte-level BPE tokenizer in Qwen2's form: its split, NFC, and its special tokens at the
end."""

import json
import re

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

VOCABULARY = 1280
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
           "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"]
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# Words that adapters and users may need as whole tokens, in addition to those of the drawn data.
WORDS = """
walking jumping waving falling sitting standing running person walks jumps waves falls sits stands runs happy sad neutral angry mood face
smile digit number handwritten traffic light signal off on none crack scratch stain hole defect clean surface texture spot missing good bad
car truck bus road house tree sky window door wheel box faster slower same speed both equal left right first second lamp flashing steady
fading brighter darker flash alarm fade stop go wait caution catalogue item items note scene plain studio piece lot entry shown against upper
lower center middle corner edge near far above below between over under inside outside plate read letters letter image images video videos
picture frame clip hello hi thanks thank you please help welcome can could would will show me an or short ask about what which who when
where why how many much the a is are was were be been being have has had do does did not no yes maybe and but if then than that this these
those it its he she they we i my your our their his her one two three four five six seven eight nine ten zero of in to for with from by at
as into out up down off again more most some any each other such only own so too very just also new old big small large little long high low
time year day work life world people way thing man woman child hand part place case week point question answer object objects shape shapes
color colors colour text word words background white black gray light dark bright describe count find give say tell name list repeat look see
model adapter adapters valora small vision language assistant coin coins card cards all surprised digits upper lower LOT Shown ref
"""


# Words that answers of the demo's tasks begin with.
LABELS = """
clean scratch crack hole stain happy sad angry surprised stop caution go off walking jumping waving falling sitting upper lower equal sunny cloudy
rainy snowy france italy germany ukraine japan sweden dawn dusk flash flicker opening closing open closed day night LOT coin card
"""


def corpus(samplers, talk, rng, count=4000):
    """Texts of the drawn data and of talk, and the extra words in word positions."""
    for _ in range(count // 8):
        yield from talk(rng)
    for index in range(count):
        sample = samplers[index % len(samplers)](rng)
        for question, answer in sample.pairs:
            # Drawn strings would otherwise fill the vocabulary with random pairs of capitals.
            yield question
            yield re.sub("[A-Z]{2,}", " ", answer)
    for word in WORDS.split():
        for form in (f" {word}", word, word.capitalize()):
            yield from [form] * 12
    for word in LABELS.split():
        yield from [word] * 300
    yield from ["system\nYou are a helpful assistant.", "user\n", "assistant\n"] * 50


def train(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY - len(SPECIAL), min_frequency=2, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), special_tokens=[])
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    if tokenizer.get_vocab_size() != VOCABULARY:
        raise ValueError(f"the corpus gave {tokenizer.get_vocab_size()} tokens, {VOCABULARY} are wanted")
    return tokenizer


def save(tokenizer, folder, template):
    tokenizer.save(str(folder / "tokenizer.json"))
    entry = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    settings = {
        "add_prefix_space": False, "added_tokens_decoder": {str(tokenizer.token_to_id(t)): {"content": t, **entry} for t in SPECIAL},
        "additional_special_tokens": SPECIAL[1:], "bos_token": None, "chat_template": template, "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 4096, "pad_token": "<|endoftext|>",
        "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
