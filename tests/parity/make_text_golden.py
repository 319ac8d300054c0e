"""Writes src/text/testdata/golden.json: small tokenizers, texts, and the results of the `tokenizers` package.

Run: PYTHONPATH=tests/helpers python tests/parity/make_text_golden.py
"""

import json
import pathlib

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

import llama_tokenizers as llama
import tokenizer_parity as parity

OUTPUT = pathlib.Path(__file__).parents[2] / "src/text/testdata/golden.json"

TEXTS = ["", " ", "the image", "The  images\n\n of  1234 cats", "it's WE'LL 'ſ",
         "e\u0301te\u0301 \u1112\u1161\u11ab \u212b", "<|im_start|>user\nwhat?<|im_end|>", "a<|im_start|",
         "猫 👩‍👩‍👧 ١٢٣ ½", "\u180e\u3000\u2028\u0085x", "\x00\x01\r\n\t", "lost <x>  here", "word words <w>",
         "  two words <s> of\n<l> <r> <n>", "\u0344\u0323a\u0323\u0307\u08ca\u0301"]
ID_LISTS = [[], [256, 195, 97, 3, 0], [172, 240, 159, 100], [99, 239, 65, 10_000], [13, 232, 176, 154, 300, 13],
            [0, 1, 13, 198, 2, 37, 13]]


def small(words, added, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=290, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tokenizer.train_from_iterator([" ".join(parity.WORDS)] * 3, trainer)
    tokenizer.add_tokens(added)
    return tokenizer


def tokenizers():
    specials = [AddedToken(s, special=True, normalized=False) for s in ("<|im_start|>", "<|im_end|>")]
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    yield "qwen2", small([pre_tokenizers.Split(Regex(parity.QWEN2_WORDS), "isolated"), byte_level], specials)
    gpt2 = small([pre_tokenizers.ByteLevel(add_prefix_space=True)], [
        AddedToken("<x>", lstrip=True, rstrip=True), AddedToken("word", single_word=True), AddedToken("\u212b")])
    yield "gpt2 with added words", gpt2
    digits = small([pre_tokenizers.Digits(True), pre_tokenizers.Split(" ", "merged_with_next"), byte_level], specials,
                   ignore_merges=True)
    digits.post_processor = processors.TemplateProcessing(single="<|im_start|> $A <|im_end|>", special_tokens=[
        (t.content, digits.token_to_id(t.content)) for t in specials])
    yield "digits and template", digits
    few = {"size": 120, "alphabet": 50}
    yield "llama with a normalizer", llama.add_tokens_of_every_flag(llama.with_normalizer(**few))
    yield "llama with metaspace", llama.add_tokens_of_every_flag(
        llama.with_metaspace("first", True, "metaspace and bytes", **few))


def main():
    golden = []
    for name, tokenizer in tokenizers():
        texts = [{"text": t, "ids": tokenizer.encode(t).ids,
                  "plain_ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in TEXTS]
        lists = ID_LISTS + [case["ids"] for case in texts]
        decodes = [{"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False),
                    "skipped": tokenizer.decode(ids, skip_special_tokens=True)} for ids in lists]
        golden.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "encode": texts, "decode": decodes})
    lines = ",\n".join(json.dumps(entry, ensure_ascii=True, separators=(",", ":")) for entry in golden)
    OUTPUT.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
