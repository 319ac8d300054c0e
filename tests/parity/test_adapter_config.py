"""Every field of the installed PEFT's LoraConfig is honoured, has no effect, or is refused by name, and is documented as
such.

A PEFT release that adds a field fails here until somebody has examined what the field changes.
"""

import dataclasses
import json
import pathlib
import shutil

import peft
import pytest
from peft import LoraConfig

from checkpoints import save_adapter
from programs import REPOSITORY, inspect

# Each with a value that is wrong or cannot be served exactly, so that the error names the field.
HONOURED = {"peft_type": "IA3", "r": "x", "lora_alpha": "x", "use_rslora": "x", "target_modules": 5, "exclude_modules": 5,
            "modules_to_save": 5, "layers_to_transform": "x", "layers_pattern": 5, "rank_pattern": ["x"], "alpha_pattern": ["x"],
            "bias": "some", "lora_bias": "x", "trainable_token_indices": "x", "ensure_weight_tying": "x", "init_lora_weights": "pissa",
            "use_dora": "x", "use_bdlora": "x", "alora_invocation_tokens": "x", "target_parameters": ["mlp.experts"]}
# Fields for training, initialisation and bookkeeping; fan_in_fan_out and megatron concern layers that no
# supported model has.
WITHOUT_EFFECT = {"task_type": "CAUSAL_LM", "auto_mapping": {"base_model_class": "x"}, "peft_version": "1", "revision": "x",
                  "base_model_name_or_path": "x", "inference_mode": True, "lora_dropout": 0.5, "fan_in_fan_out": True,
                  "megatron_config": {"a": 1}, "megatron_core": "x", "loftq_config": {"bits": 4}, "eva_config": {"rho": 2},
                  "corda_config": {"x": 1}, "lora_ga_config": {"x": 1}, "velora_config": {"num_groups": 2}, "qalora_group_size": 8,
                  "runtime_config": {"ephemeral_gpu_offload": True}}
REFUSED = {"use_qalora": True, "layer_replication": [[0, 1]],
           "arrow_config": {"top_k": 1}, "kasa_config": {"beta": 1},
           "monteclora_config": {"num_samples": 2}}
FIELDS = {field.name for field in dataclasses.fields(LoraConfig)}
NAME = "text-one-layer"


def test_every_field_is_classified():
    assert FIELDS - HONOURED.keys() - WITHOUT_EFFECT.keys() - REFUSED.keys() == set(), peft.__version__
    assert len(FIELDS) > 30


def test_every_field_is_documented():
    rows = {}
    for line in (REPOSITORY / "docs" / "adapters.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5:
            rows |= dict.fromkeys(cells[1].replace("`", "").split(", "), cells[2])
    for fields, what in ((HONOURED, "honoured"), (WITHOUT_EFFECT, "without effect"), (REFUSED, "refused")):
        for field in fields:
            assert rows.get(field) == what, field


@pytest.fixture(scope="module")
def reports(models, tmp_path_factory):
    """{field: report of an adapter with this field changed}; None: of the adapter as saved."""
    root = tmp_path_factory.mktemp("config")
    saved = pathlib.Path(save_adapter(models.memory[NAME], root / "adapter", 990, rank=2))
    written = json.loads((saved / "adapter_config.json").read_text())
    changed = {None: saved}
    for field, value in (HONOURED | WITHOUT_EFFECT | REFUSED).items():
        changed[field] = shutil.copytree(saved, root / field)
        (changed[field] / "adapter_config.json").write_text(json.dumps(written | {field: value}))
    return dict(zip(changed, inspect(changed.values(), "--model", models[NAME]), strict=True))


def test_folder_of_the_installed_release_is_served(reports):
    report = reports[None]
    assert (report["servable"], report["warnings"], report["problems"]) == (True, [], [])


@pytest.mark.parametrize("field", sorted(HONOURED | REFUSED))
def test_fields_that_change_answers_are_read(reports, field):
    report = reports[field]
    assert not report["servable"] and field in report["problems"][0], report["problems"]


@pytest.mark.parametrize("field", sorted(WITHOUT_EFFECT))
def test_fields_without_effect_are_ignored(reports, field):
    report = reports[field]
    assert (report["servable"], report["warnings"], report["problems"]) == (True, [], [])
