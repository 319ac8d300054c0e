"""Fixtures of all suites."""

import pytest


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """A tiny random model and adapters by name (serving.make_folders); tests copy what they change."""
    from serving import make_folders
    return make_folders(tmp_path_factory.mktemp("served"))
