"""Events that clients must not notice: a rolling update under load, and a replica that hangs."""

import os
import signal

from clusters import sample_of, wait_until
from load import Load, expected

SETTINGS = {"replicas": 3}


def test_rolling_update_fails_no_request(application, single, capsys):
    """A different program option: every replica and the ingress are replaced."""
    application.wait_for_replicas(3)
    before = {replica["replica"] for replica in application.replicas()}
    load = Load(expected(single), clients=16)
    with load:
        wait_until(lambda: load.answered > 32 or not load.alive, "answers")
        settings = application.settings
        options = [*settings.options, "--max-num-seqs", "48"]
        application.deploy(settings.model_copy(update={"options": options}))
        application.wait_for_replicas(3)
        wanted = load.answered + 64
        wait_until(lambda: load.answered > wanted or not load.alive, "answers after the update")
    after = {replica["replica"] for replica in application.replicas()}
    with capsys.disabled():
        print(f"\nrolling update: {dict(load.counts)}")
    assert load.wrong == [] and load.counts["broken streams"] == 0
    assert not before & after


def test_stalled_replica_is_avoided(application, single):
    application.wait_for_replicas(3)
    stopped = application.replicas()[0]["child"]
    load = Load(expected(single), clients=40)
    os.kill(stopped, signal.SIGSTOP)
    try:
        with load:
            wait_until(
                lambda: load.answered >= 300 or not load.alive, "300 answers of the others", 80
            )
            os.kill(stopped, signal.SIGCONT)
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert load.wrong == [] and load.counts["broken streams"] == 0
    assert (
        sample_of(application.client.get("/metrics").text, "valora_serve:failed_requests_total")
        == 0
    )
