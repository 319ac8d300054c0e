"""A checkpoint with adapters, and the reference for the weights that it represents."""

from programs import Engine
from reference import expect_same


class AdaptedCase:
    """Has `folder` (or a file), `reference`, `adapters` (name: path) and `requests`, the first five of which use different adapters."""

    def expect_same(self, **options):
        with Engine(self.folder, **options) as engine:
            for adapter, path in self.adapters.items():
                assert engine.load(adapter, path)["warnings"] == []
            answers = engine.batch(self.requests)
            assert (engine.stats()["merges"] == 0) == (options.get("mode", "unmerged") == "unmerged")
        for request, answer in zip(self.requests, answers, strict=True):
            expect_same(self.reference, request, answer, tolerance=1e-3)
        # Adapters and quantisation must matter: each use gives a different answer.
        assert len({answer["choices"][0]["tokens"][0]["logprob"] for answer in answers[:5]}) == 5
        return answers
