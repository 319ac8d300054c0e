"""Builds the Serve application from its settings."""

from typing import Any

from ray import serve
from ray.serve import Application
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from .ingress import ValoraIngress
from .replica import ValoraServer
from .settings import Settings


def autoscaling(settings: Settings) -> AutoscalingConfig:
    """Ray applies the bounds and delays to the number that the policy asks for."""
    assert settings.max_replicas is not None
    least = settings.replicas if settings.min_replicas is None else settings.min_replicas
    return AutoscalingConfig(
        min_replicas=min(least, settings.max_replicas),
        max_replicas=settings.max_replicas,
        target_ongoing_requests=settings.target_ongoing_requests,
        upscale_delay_s=settings.upscale_delay,
        downscale_delay_s=settings.downscale_delay,
        look_back_period_s=settings.look_back,
        policy=AutoscalingPolicy(
            policy_function="valora_serve.scaling:ByQueueAndAttainment",
            policy_kwargs={"attainment": settings.attainment},
        ),
    )


ROUTERS = {
    "cost": "valora_serve.routing.router:CostRouter",
    "round-robin": "valora_serve.routing.router:RoundRobinRouter",
    "prefix": "valora_serve.routing.router:PrefixRouter",
}


def router(settings: Settings) -> RequestRouterConfig:
    options: dict[str, Any] = {"request_routing_stats_period_s": settings.stats_period}
    if settings.routing != "power-of-two":  # that router is Ray's own
        options["request_router_class"] = ROUTERS[settings.routing]
    if settings.routing == "cost":
        options["request_router_kwargs"] = {"period": settings.stats_period}
    return RequestRouterConfig(**options)


def app(settings: Settings) -> Application:
    """`serve run valora_serve:app model=…`; the keys are those of Settings."""
    if not isinstance(settings, Settings):
        settings = Settings.model_validate(settings)
    actor: dict[str, Any] = {"num_cpus": settings.cores, "resources": settings.resources}
    if settings.memory:
        actor["memory"] = settings.memory
    how_many: dict[str, Any] = (
        {"autoscaling_config": autoscaling(settings)}
        if settings.autoscales
        else {"num_replicas": settings.replicas}
    )
    logs = {"enable_access_log": settings.access_log}
    servers = serve.deployment(
        logging_config=logs,
        ray_actor_options=actor,
        max_ongoing_requests=settings.max_ongoing_requests,
        health_check_period_s=settings.health_period,
        health_check_timeout_s=settings.health_timeout,
        graceful_shutdown_timeout_s=settings.drain_timeout,
        graceful_shutdown_wait_loop_s=0.5,
        request_router_config=router(settings),
        **how_many,
    )(ValoraServer)
    ingress = serve.deployment(
        logging_config=logs,
        ray_actor_options={"num_cpus": 0.01, "resources": settings.ingress_resources},
        max_ongoing_requests=100_000,
        max_surge_percent=100,  # there is only one: its successor starts before it stops
        health_check_period_s=settings.health_period,
        graceful_shutdown_timeout_s=settings.drain_timeout,
        graceful_shutdown_wait_loop_s=0.5,
    )(ValoraIngress)
    return ingress.bind(settings, servers.bind(settings))
