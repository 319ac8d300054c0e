"""Local clusters, applications on them, and clients."""

import contextlib
import os
import pathlib
import re
import shutil
import time

import httpx
import ray
from ray import serve
from ray.cluster_utils import Cluster

from valora_serve import app
from valora_serve.child import Child
from valora_serve.settings import Settings, command

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
HERE = "127.0.0.1"
NODE = "127.0.0.2"  # Ray replaces 127.0.0.1 by an interface's address, but not this loopback
PORT = int(os.environ.get("VALORA_TEST_PORT", "8761"))
URL = f"http://{HERE}:{PORT}"
SEATS = 2  # replicas that fit on a worker raylet
# By default Ray may take a minute to notice that a node is gone, as long as the tests' clients wait.
NODE_CHECKS = {
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 5000,
    "health_check_failure_threshold": 3,
}


def program():
    folder = pathlib.Path(os.environ.get("VALORA_BIN_DIR", REPOSITORY / "build"))
    found = folder / "valora"
    if not found.exists():
        raise FileNotFoundError(f"{found} is not built; run make build, or set VALORA_BIN_DIR")
    return str(found)


def demo_settings(**more):
    given = {
        "model": str(REPOSITORY / "demo/model"),
        "served_model_name": "valora-demo",
        "program": program(),
        "manifest": str(REPOSITORY / "demo/manifest.json"),
        "resources": {"seat": 1},
        "cores": 1,
        "options": [
            "--dtype",
            "float32",
            "--pool-memory",
            "64M",
            "--media-cache",
            "16M",
            "--visual-cache",
            "16M",
        ],
        "ingress_resources": {"front": 0.01},
        "health_period": 1,
        "health_timeout": 60,  # a busy machine is not a fault
        "silence_timeout": 10,
        "stats_period": 0.5,
        "drain_timeout": 20,
        "start_timeout": 120,
    }
    return Settings.model_validate(given | more)


class LocalCluster:
    """One raylet for proxy and ingress, and two for replicas."""

    def __init__(self, workers=2):
        self._cluster = Cluster(
            initialize_head=True,
            head_node_args={
                **self._node(),
                "num_cpus": 2,
                "resources": {"front": 1},
                "include_dashboard": False,
                "_system_config": NODE_CHECKS,
            },
        )
        self._size = workers
        self.workers = [self.add_worker() for _ in range(workers)]
        ray.init(
            address=self._cluster.address,
            namespace="serve",
            log_to_driver=bool(os.environ.get("SHOW_RAY_LOG")),
        )
        serve.start(http_options={"host": HERE, "port": PORT, "location": "HeadOnly"})

    @staticmethod
    def _node():
        return {"object_store_memory": 100_000_000, "node_ip_address": NODE}

    def add_worker(self):
        return self._cluster.add_node(**self._node(), num_cpus=2, resources={"seat": SEATS})

    def kill_worker(self, node):
        """Kills a raylet with SIGKILL."""
        self.workers.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def repair(self):
        """Replaces raylets that have ended for whatever reason, as a self-repairing cluster would."""
        for node in [node for node in self.workers if node.dead_processes()]:
            print(f"a raylet has ended: {node.dead_processes()}")
            self.kill_worker(node)
        while len(self.workers) < self._size:
            self.workers.append(self.add_worker())

    def stop(self):
        serve.shutdown()
        ray.shutdown()
        self._cluster.shutdown()


class Application:
    """The application, and a client for it."""

    def __init__(self, cluster, settings):
        self.cluster = cluster
        self.settings = settings
        self.handle = None
        self.deploy(settings)
        self.client = httpx.Client(base_url=URL, timeout=120)

    def deploy(self, settings):
        self.settings = settings
        serve.run(app(settings), name="valora", route_prefix="/")

    def replicas(self):
        """What each replica reports about itself: processes and node."""
        handle = serve.get_deployment_handle("ValoraServer", "valora")
        return handle.broadcast("whereabouts").results(timeout_s=30)

    def wait_for_replicas(self, count, timeout=90):
        wait_until(lambda: self.running() == count, f"{count} replicas run", timeout)

    def running(self):
        self.cluster.repair()
        states = serve.status().applications["valora"].deployments["ValoraServer"].replica_states
        return states.get("RUNNING", 0)

    def stop(self):
        self.client.close()
        serve.delete("valora")


@contextlib.contextmanager
def single_server(settings):
    child = Child(command(settings, settings.cores), log=lambda line: None)
    with httpx.Client(base_url=child.start(60), timeout=120) as client:
        yield client
    child.stop(10)


def wait_until(condition, what, timeout=60):
    deadline = time.monotonic() + timeout
    while True:
        with contextlib.suppress(httpx.HTTPError):
            if condition():
                return
        assert time.monotonic() < deadline, f"never came about: {what}"
        time.sleep(0.1)


def chat(model, text, **more):
    return {
        "model": model,
        "messages": [{"role": "user", "content": text}],
        "temperature": 0,
        "max_tokens": 24,
    } | more


def sample_of(text, name):
    """The sum of a metric over its labels."""
    found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return sum(map(float, found))


def content(answer):
    """The parts of an answer that must equal another server's: everything but its identity."""
    return {
        key: value for key, value in answer.items() if key in ("choices", "data", "usage", "object")
    }


def have_store(folder, names=("adapter-1", "adapter-3")):
    """Creates a store with some of the demo's adapters and their digests."""
    from valora_serve.store import SUMS, sums_of

    for name in names:
        shutil.copytree(REPOSITORY / "demo/adapters" / name, folder / name)
        (folder / name / SUMS).write_text(sums_of(folder / name))
    return folder
