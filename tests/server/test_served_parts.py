"""A server with adapters on three different parts of the model at once."""

import concurrent.futures

import pytest

import checkpoints
from serving import Server, image_part, picture, text_part

PARTS = {"language": r".*language_model\.layers\..*_proj", "projector": r".*(visual\.merger\.mlp\.[02]|linear_[12])",
         "tower": r".*(visual\.blocks|vision_tower)\..*\.(qkv|proj|fc1|fc2|[a-z]+_proj)"}


@pytest.fixture(scope="module", params=["vl25-windows", "llava-default"])
def server(request, tmp_path_factory):
    root = tmp_path_factory.mktemp("parts")
    base = checkpoints.make_model(request.param)
    folders = {"model": checkpoints.save_model(base, root / "model")}
    for seed, (name, targets) in enumerate(PARTS.items()):
        folders[name] = checkpoints.save_adapter(base, root / name, 40 + seed, rank=4 + seed, targets=targets)
    made = Server(folders)
    yield made
    assert made.stop() == 0


def test_mixed_requests_equal_single_ones(server):
    contents = [[image_part(picture(seed)), text_part("What is this?")] for seed in range(3)]
    contents.append([image_part(picture(0)), text_part("and"), image_part(picture(1, 70, 30)), text_part("differ?")])
    jobs = [(model, content) for content in contents for model in ["tiny", *PARTS]] * 2

    def ask(job):
        model, content = job
        choice = server.chat(model, content, max_tokens=16, logprobs=True)["choices"][0]
        return choice["message"]["content"], [token["logprob"] for token in choice["logprobs"]["content"]]

    alone = {i: ask(job) for i, job in enumerate(jobs[:len(jobs) // 2])}
    # A random model may give the same tokens with two adapters, so probabilities are compared.
    assert len({round(logprobs[0], 4) for _, logprobs in alone.values()}) == len(alone), "every part has its say"
    steps = server.metric("valora:engine_steps_total")
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        together = list(pool.map(ask, jobs))
    for i, answer in enumerate(together):
        text, logprobs = alone[i % len(alone)]
        assert answer[0] == text and answer[1] == pytest.approx(logprobs, abs=1e-4), jobs[i][0]
    assert server.metric("valora:engine_steps_total") - steps < 16 * len(jobs) / 2, "they shared steps"

