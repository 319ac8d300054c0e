"""Checkpoints, their references and engines, each created once and only when needed."""

import pytest


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Folders of the checkpoints by name; `models.memory[name]` is the model itself."""
    return Models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def references(models):
    return Cache(lambda name: reference_of(models[name]))


@pytest.fixture(scope="session")
def engines(models):
    """Engines with default options, by model name; for tests that do not depend on the cache."""
    from programs import Engine
    cache = Cache(lambda name: Engine(models[name]))
    yield cache
    for engine in cache.values():
        engine.close()


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    from media_probe import started_probe
    yield from started_probe(tmp_path_factory)


class Cache(dict):
    def __init__(self, make):
        self.make = make

    def __missing__(self, key):
        self[key] = value = self.make(key)
        return value


class Models(Cache):
    def __init__(self, root):
        import checkpoints
        super().__init__(lambda name: checkpoints.save_model(self.memory[name], root / name))
        self.memory = Cache(checkpoints.make_model)


def reference_of(folder):
    from reference import Reference
    return Reference(folder)
