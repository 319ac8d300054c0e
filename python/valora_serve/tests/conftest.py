"""A local Ray cluster of three raylets, the application on the demo model, and a single server for comparison."""

import os

os.environ.setdefault("RAY_DISABLE_METRICS_COLLECTION", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# How often Ray's autoscaling receives request counts; 10 s by default.
os.environ.setdefault("RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S", "0.5")
os.environ.setdefault("RAY_SERVE_HANDLE_AUTOSCALING_METRIC_PUSH_INTERVAL_S", "0.5")

import pytest

from clusters import Application, LocalCluster, demo_settings, single_server


@pytest.fixture(scope="session")
def cluster():
    running = LocalCluster()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def application(cluster, request):
    """The application, with the module's SETTINGS."""
    running = Application(cluster, demo_settings(**getattr(request.module, "SETTINGS", {})))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def single():
    """A `valora serve` on the demo model without Ray, whose answers all others must equal."""
    with single_server(demo_settings()) as client:
        yield client
