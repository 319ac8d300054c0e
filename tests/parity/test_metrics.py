"""Metrics of src/generator/data against pycocoevalcap (CIDEr-D, ROUGE-L) and a reimplementation of the VQA challenge's rule.

The metrics_probe program is looked up in $VALORA_BIN_DIR (default: build) and its subfolders.
"""

import functools
import json
import random
import re
import subprocess

import pytest
from pycocoevalcap.cider.cider_scorer import CiderScorer
from pycocoevalcap.rouge.rouge import Rouge

from programs import find_program

WORDS = "a the cat dog man woman red big on in with and two street bus ball it's t-shirt runs sits near 3.5".split()


@pytest.fixture(scope="module")
def ask():
    program = subprocess.Popen([find_program("metrics_probe")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def score(metric, samples):
        """[(answer, references)] → the set's value, the samples' shares."""
        command = {"metric": metric, "samples": [{"answer": a, "references": r} for a, r in samples]}
        program.stdin.write(json.dumps(command) + "\n")
        program.stdin.flush()
        answer = json.loads(program.stdout.readline())
        assert "error" not in answer, answer
        return answer["value"], answer["of_samples"]

    yield score
    program.stdin.close()
    assert program.wait() == 0
    program.stdout.close()


def caption(rng, low=1, high=14):
    return " ".join(rng.choices(WORDS, k=rng.randint(low, high)))


def answer_near(rng, references):
    """An empty answer, an unrelated one, or a reference with words changed, dropped or repeated."""
    kind = rng.random()
    if kind < 0.05:
        return ""
    if kind < 0.3:
        return caption(rng)
    words = rng.choice(references).split()
    for _ in range(rng.randint(0, 4)):
        at = rng.randrange(len(words))
        words[at:at + 1] = rng.choice([[], [words[at]] * 3, [rng.choice(WORDS)], [words[at], rng.choice(WORDS)]])
        words = words or ["cat"]
    return " ".join(words)


def caption_set(rng):
    references = [[caption(rng) for _ in range(rng.randint(1, 6))] for _ in range(rng.randint(1, 25))]
    return [(answer_near(rng, r), r) for r in references]


@pytest.mark.parametrize("seed", range(60))
def test_cider_d_equals_reference(ask, seed):
    samples = caption_set(random.Random(seed))
    scorer = CiderScorer()
    for answer, references in samples:
        scorer += (answer, references)
    expected, shares = scorer.compute_score()
    value, of_samples = ask("cider", samples)
    assert value == pytest.approx(expected / 10, abs=1e-12)
    assert of_samples == pytest.approx([share / 10 for share in shares], abs=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_rouge_l_equals_reference(ask, seed):
    samples = caption_set(random.Random(100 + seed))
    expected, shares = Rouge().compute_score({i: r for i, (_, r) in enumerate(samples)}, {i: [a] for i, (a, _) in enumerate(samples)})
    value, of_samples = ask("rouge_l", samples)
    assert value == pytest.approx(expected, abs=1e-12)
    assert of_samples == pytest.approx(list(shares), abs=1e-12)


# The challenge's rule, reimplemented from its description: https://visualqa.org/evaluation.html
NUMBERS = dict(zip("none zero one two three four five six seven eight nine ten".split(), "0 0 1 2 3 4 5 6 7 8 9 10".split()))
CONTRACTIONS = {
    "aint": "ain't", "cant": "can't", "couldnt": "couldn't", "couldn'tve": "couldn't've", "couldnt've": "couldn't've", "dont": "don't",
    "hed": "he'd", "hes": "he's", "isnt": "isn't", "itll": "it'll", "maam": "ma'am", "oclock": "o'clock", "thats": "that's",
    "theyre": "they're", "twas": "'twas", "whats": "what's", "wont": "won't", "yall": "y'all", "yall'll": "y'all'll",
    "y'allll": "y'all'll", "youre": "you're"}
SIGNS = [";", "/", "[", "]", '"', "{", "}", "(", ")", "=", "+", "\\", "_", "-", ">", "<", "@", "`", ",", "?", "!"]


@functools.cache
def normalised(text):
    text = text.replace("\n", " ").replace("\t", " ").strip()
    out = text
    for sign in SIGNS:
        alone = sign + " " in text or " " + sign in text or re.search(r"\d,\d", text)
        out = out.replace(sign, "" if alone else " ")
    out = re.sub(r"\.(?!\d)", "", out)
    words = [NUMBERS.get(word, word) for word in out.lower().split()]
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ("a", "an", "the"))


def vqa_share(answer, answers):
    shares = []
    for left_out in range(len(answers)):
        others = answers[:left_out] + answers[left_out + 1:]
        shares.append(min(1, sum(normalised(other) == normalised(answer) for other in others) / 3))
    return sum(shares) / len(shares)


VQA_WORDS = [*NUMBERS, *CONTRACTIONS, *CONTRACTIONS.values(), "A", "an", "The", "red", "Red", "1,000", "1000", "3.5", "10:30", "u.s.a."]
VQA_JOINTS = [" ", " ", " ", ", ", " ,", ",", "/", " / ", "-", ". ", ".", "! ", "?", "\n", "\t", " (", ") ", "_", '"', ";", "'"]


def vqa_text(rng):
    text = rng.choice(["", " ", "the ", "-"])
    for _ in range(rng.randint(1, 4)):
        text += rng.choice(VQA_WORDS) + rng.choice(VQA_JOINTS)
    return text + rng.choice(["", ".", "!"])


def spelt_otherwise(rng, text):
    return rng.choice([text, text.upper(), "the " + text, text + "!", text.replace(" ", "  "), " " + text + " ", text.replace("'", "")])


@pytest.mark.parametrize("seed", range(40))
def test_vqa_accuracy_equals_reference(ask, seed):
    rng = random.Random(200 + seed)
    samples = []
    for _ in range(25):
        forms = [vqa_text(rng) for _ in range(rng.randint(1, 3))]
        answers = [spelt_otherwise(rng, rng.choice(forms)) for _ in range(rng.choice([2, 3, 5, 10, 10, 10]))]
        samples.append((spelt_otherwise(rng, rng.choice(forms)), answers))
    expected = [vqa_share(answer, answers) for answer, answers in samples]
    value, of_samples = ask("vqa", samples)
    assert of_samples == pytest.approx(expected, abs=1e-12), samples
    assert value == pytest.approx(sum(expected) / len(expected), abs=1e-12)
    assert 0 < value < 1
