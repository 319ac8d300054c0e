"""One server with adapters on three different parts of the model at once."""

import concurrent.futures

import pytest

from serving import Server, checkpoints, image_part, picture, text_part

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


def test_each_answer_equals_its_own_alone(server):
    contents = [[image_part(picture(seed)), text_part("What is this?")] for seed in range(3)]
    contents.append([image_part(picture(0)), text_part("and"), image_part(picture(1, 70, 30)), text_part("differ?")])
    jobs = [(model, content) for content in contents for model in ["tiny", *PARTS]] * 2

    def ask(job):
        model, content = job
        return server.chat(model, content, max_tokens=16)["choices"][0]["message"]["content"]

    alone = {i: ask(job) for i, job in enumerate(jobs[:len(jobs) // 2])}
    assert len(set(alone.values())) > len(alone) / 2, "every part has its say"
    steps = server.metric("valora:engine_steps_total")
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        together = list(pool.map(ask, jobs))
    for i, answer in enumerate(together):
        assert answer == alone[i % len(alone)], jobs[i][0]
    assert server.metric("valora:engine_steps_total") - steps < 16 * len(jobs) / 2, "they shared steps"

