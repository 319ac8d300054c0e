"""Faults under load from 64 clients: kill -9 of a child, a replica or a raylet, and a child or a replica that hangs.
There must be no wrong answer, no hang and no refusal. make test-ray runs three of them, VALORA_CONFORMANCE=full all
five."""

import contextlib
import os
import signal
import time

import httpx
import pytest

from clusters import sample_of, wait_until
from load import Load, expected

SETTINGS = {"replicas": 3}
NAMES = ("requests", "retries", "failed_requests", "broken_streams", "silent_replicas")


@contextlib.contextmanager
def kill_child(application, replica):
    os.kill(replica["child"], signal.SIGKILL)
    yield


@contextlib.contextmanager
def kill_replica(application, replica):
    os.kill(replica["pid"], signal.SIGKILL)
    yield


@contextlib.contextmanager
def kill_raylet(application, replica):
    """Another raylet takes its place."""
    cluster = application.cluster
    cluster.kill_worker(next(node for node in cluster.workers if node.node_id == replica["node"]))
    cluster.repair()
    yield


@contextlib.contextmanager
def stopped(*processes):
    """No connection breaks, and Ray's timeouts are longer than the test."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def stop_child(application, replica):
    return stopped(replica["child"])


def stop_replica(application, replica):
    """Like a node that disappears silently."""
    return stopped(replica["child"], replica["pid"])


def counts(application):
    text = application.client.get("/metrics").text
    return {name: sample_of(text, f"valora_serve:{name}_total") for name in NAMES}


def requests_of(replica):
    """The number of requests that the replica's server has now."""
    text = httpx.get(f"{replica['url']}/metrics", timeout=30).text
    return sample_of(text, "vllm:num_requests_running") + sample_of(
        text, "vllm:num_requests_waiting"
    )


def disturbed(load, application, disturb):
    """Runs the load until it has continued for a while after the fault and all replicas are
    back."""

    def more(answers):
        wanted = load.answered + answers
        wait_until(lambda: load.answered >= wanted or not load.alive, f"{answers} answers", 180)

    def all_clients(answers):
        """Checks that the fault holds up none of the clients."""
        wanted = [so_far + answers for so_far in load.answers]

        def have_them():
            return all(have >= least for have, least in zip(load.answers, wanted))

        wait_until(lambda: have_them() or not load.alive, f"{answers} answers for each", 90)

    with load:
        more(64)
        replica = max(application.replicas(), key=requests_of)
        # So that the fault hits requests, including started streams.
        os.kill(replica["child"], signal.SIGSTOP)
        time.sleep(1)
        with disturb(application, replica):
            more(256)
            all_clients(2)
        more(64)
        application.wait_for_replicas(SETTINGS["replicas"], 120)
        more(64)


# A raylet takes its replica down with it, and a hanging replica its child.
FAULTS = [kill_child, kill_raylet, stop_replica]
if os.environ.get("VALORA_CONFORMANCE") == "full":
    FAULTS += [kill_replica, stop_child]


@pytest.mark.parametrize("disturb", FAULTS)
def test_requests_survive_a_fault_under_load(application, single, disturb, capsys):
    application.wait_for_replicas(SETTINGS["replicas"])
    before = counts(application)
    load = Load(expected(single))
    disturbed(load, application, disturb)
    after = {name: int(value - before[name]) for name, value in counts(application).items()}
    with capsys.disabled():
        print(f"\n{disturb.__name__}: {dict(load.counts)}, the ingress counted {after}")
    assert load.wrong == []
    assert after["failed_requests"] == 0
    assert after["broken_streams"] == load.counts["broken streams"]
    assert after["retries"] + after["broken_streams"] > 0  # the fault had an effect
    assert after["silent_replicas"] > 0 or disturb not in (stop_child, stop_replica)
