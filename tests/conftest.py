"""Fixtures shared by all suites."""

import importlib.metadata

import pytest

if int(importlib.metadata.version("transformers").split(".")[0]) >= 5:
    import visual_backend  # noqa: F401  must precede any import of a model


collect_ignore = ["clients"]  # of another environment, .venv-clients


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """A tiny random model and adapters by name (serving.make_folders); tests copy folders before
    changing them."""
    from serving import make_folders
    return make_folders(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def smollm2():
    """The folder of a published model, SmolLM2-135M-Instruct in bf16."""
    import newest
    return newest.smollm2()
