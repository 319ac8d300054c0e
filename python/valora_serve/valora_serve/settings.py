"""The application's settings, passed to `serve run` as key=value or in a Serve config file as `args`."""

import os
import pathlib
import re
import shlex
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


def parse_bytes(text: str | int) -> int:
    """Parses 4096, "8G" (2^33) or "8g" (8 * 10^9), like valora's options."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG]?)(?:i?B)?", str(text).strip())
    if not found:
        raise ValueError(f"{text!r} is not a number of bytes such as 4G")
    return int(float(found.group(1)) * UNITS[found.group(2)])


def is_url(place: str) -> bool:
    return re.match(r"^[a-z][a-z0-9+.-]+::?//", place) is not None


def absolute(place: str) -> str:
    """Replicas run in a different folder from the command that starts them."""
    return place if not place or is_url(place) else str(pathlib.Path(place).expanduser().resolve())


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str = Field(description="folder of the base model, on every node")
    served_model_name: str = Field("", description="name of the base model for clients")
    manifest: str = Field("", description="manifest.json of `valora fuse`, on every node")
    adapters: str = Field(
        "", description="store of adapters: a folder or a URL that fsspec knows; one subfolder each"
    )
    digests: Literal["required", "ignored"] = Field(
        "required", description="whether each adapter of the store needs a file SHA256SUMS"
    )
    cache: str = Field(
        "~/.cache/valora-serve/adapters", description="folder of a node for adapters of the store"
    )
    cache_bytes: int = Field(16 * 2**30, description="how much the cache may hold, e.g. 16G")
    options: list[str] = Field(
        default_factory=list, description="further options of `valora serve`"
    )
    program: str = Field("valora", description="the program, on every node")
    api_key: str = Field(
        "", description="key that clients must send, and that replicas use for their own requests"
    )

    cores: float = Field(1, gt=0, description="CPUs of a replica; also its threads")
    tensor_parallel_size: int = Field(
        1, ge=1, description="ranks of a replica, which share its cores on one node"
    )
    rank_cores: str = Field("auto", description="CPUs of each rank; auto: by NUMA nodes; none: any")
    memory: int = Field(
        0,
        ge=0,
        description="bytes of a replica, e.g. 8G; 0: not reserved, pool by valora's default",
    )
    resources: dict[str, float] = Field(
        default_factory=dict, description="further resources of a replica"
    )
    ingress_resources: dict[str, float] = Field(
        default_factory=dict, description="where the ingress runs"
    )
    replicas: int = Field(1, ge=0, description="how many, where max_replicas is not given")
    min_replicas: int | None = Field(None, ge=0)
    max_replicas: int | None = Field(None, ge=1)
    target_ongoing_requests: float = Field(
        16, gt=0, description="requests per replica that autoscaling aims at"
    )
    ttft_target: float = Field(
        0, ge=0, description="seconds to the first token; 0: autoscaling by queue alone"
    )
    attainment: float = Field(
        0.95, gt=0, le=1, description="share of requests that should meet ttft_target"
    )
    look_back: float = Field(30, gt=0, description="seconds over which autoscaling averages")
    upscale_delay: float = Field(5, ge=0)
    downscale_delay: float = Field(120, ge=0)
    max_ongoing_requests: int = Field(
        256, ge=1, description="requests of a replica, those that wait in it included"
    )

    routing: Literal["cost", "power-of-two", "round-robin", "prefix"] = Field(
        "cost", description="cost: by adapter, prefix and load; the others are for comparison"
    )
    access_log: bool = Field(False, description="a line of Ray's log for each request")
    stats_period: float = Field(1, gt=0, description="seconds between statistics of replicas")
    health_period: float = Field(2, gt=0)
    health_timeout: float = Field(10, gt=0)
    start_timeout: float = Field(600, gt=0, description="seconds until a replica serves")
    drain_timeout: float = Field(
        60, ge=0, description="seconds that a leaving replica gives its requests"
    )
    request_timeout: float = Field(
        600, gt=0, description="seconds until the first byte of an answer"
    )
    attempts: int = Field(
        5, ge=1, description="how often a request of which nothing was sent is tried"
    )
    silence_timeout: float = Field(
        15, ge=1, description="seconds without a word after which a replica counts as lost"
    )

    @field_validator("options", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return shlex.split(value) if isinstance(value, str) else value

    @field_validator("memory", "cache_bytes", mode="before")
    @classmethod
    def _bytes(cls, value: Any) -> Any:
        return parse_bytes(value)

    @field_validator("model", "manifest", "adapters", "cache")
    @classmethod
    def _absolute(cls, value: str) -> str:
        return absolute(value)

    @field_validator("program")
    @classmethod
    def _program(cls, value: str) -> str:
        return absolute(value) if os.sep in value else value

    @model_validator(mode="after")
    def _check(self) -> "Settings":
        own = {
            "--model",
            "--port",
            "--host",
            "--threads",
            "--served-model-name",
            "--manifest",
            "--api-key",
            "--tensor-parallel-size",
            "-tp",
            "--rank-cores",
        }
        for option in self.options:
            name = option.split("=")[0]
            if name in own:
                raise ValueError(f"options must not have {name}: the application sets it")
        ranks = self.tensor_parallel_size
        if ranks > 1 and self.cores < ranks:
            raise ValueError(f"cores is {self.cores:g}, but each of {ranks} ranks needs one")
        low, high = self.min_replicas, self.max_replicas
        if low is not None and high is not None and low > high:
            raise ValueError("min_replicas is above max_replicas")
        return self

    @property
    def heartbeat(self) -> float:
        """Seconds between a replica's heartbeats: several may be late before it counts as lost."""
        return self.silence_timeout / 5

    @property
    def autoscales(self) -> bool:
        return self.max_replicas is not None


def weight_bytes(model: str) -> int:
    return sum(path.stat().st_size for path in pathlib.Path(model).glob("*.safetensors"))


def memory_options(memory: int, weights: int) -> list[str]:
    """Divides a replica's memory: the mapped checkpoint and its packed copy, two media caches, and the pool, which
    gets the rest."""
    rest = memory - 2 * weights - 256 * 2**20
    cache = min(512 * 2**20, max(rest, 0) // 8)
    pool = rest - 2 * cache
    if pool < 32 * 2**20:
        needed = 2 * weights + (256 + 43) * 2**20
        raise ValueError(
            f"memory of {memory} bytes is too little for this model; it needs {needed} at least"
        )
    return ["--pool-memory", str(pool), "--media-cache", str(cache), "--visual-cache", str(cache)]


def command(settings: Settings, cores: float) -> list[str]:
    """The child's command line. It listens on any free loopback port."""
    words = [
        settings.program,
        "--log-level",
        "warning",
        "serve",
        "--model",
        settings.model,
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--threads",
        str(max(1, int(cores))),
        "--allow-runtime-lora-updating",
    ]
    if settings.served_model_name:
        words += ["--served-model-name", settings.served_model_name]
    if settings.manifest:
        words += ["--manifest", settings.manifest]
    if settings.tensor_parallel_size > 1:
        words += ["--tensor-parallel-size", str(settings.tensor_parallel_size)]
        words += ["--rank-cores", settings.rank_cores]
    if settings.memory and not any(
        o.startswith(("--pool-memory", "--kv-cache-memory")) for o in settings.options
    ):
        words += memory_options(settings.memory, weight_bytes(settings.model))
    return words + settings.options
