#include "server/handlers/applications/application_json.h"

#include <algorithm>
#include <optional>

namespace valora::server {
namespace {

template <typename T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

// `values` holds an optional value for each target.
template <typename Values>
OrderedJson by_target(const Values& values) {
  OrderedJson out = OrderedJson::object();
  out["ttft"] = or_null(values.ttft);
  out["tpot"] = or_null(values.tpot);
  out["e2e"] = or_null(values.e2e);
  return out;
}

double service_of(const EngineStats& stats, const std::string& tenant) {
  const auto found = std::ranges::find(stats.tenants, tenant, &TenantService::tenant);
  return found == stats.tenants.end() ? 0 : found->seconds;
}

OrderedJson quantiles_json(const std::optional<RecentLatencies::Quantiles>& quantiles) {
  if (!quantiles) return nullptr;
  return {{"p50", quantiles->p50}, {"p99", quantiles->p99}};
}

}  // namespace

OrderedJson application_json(const ServedApplication& application, const EngineStats& stats) {
  const Application& settings = application.settings;
  OrderedJson out = OrderedJson::object();
  out["name"] = settings.name;
  out["models"] = settings.models;
  out["targets"] = by_target(settings);
  out["priority"] = settings.priority;
  out["share"] = settings.share;
  out["max_waiting"] = or_null(settings.max_waiting);
  out["rate"] = or_null(settings.rate);
  out["waiting"] = application.admission.waiting();
  out["service_seconds"] = service_of(stats, settings.name);
  out["attainment"] = by_target(application.metrics.attainment());
  const ApplicationMetrics::Ended ended = application.metrics.ended();
  out["requests"] = {{"ok", ended.ok}, {"error", ended.error}, {"refused", ended.refused}};
  out["latency"] = latency_json(application.metrics.latencies());
  return out;
}

OrderedJson latency_json(const RecentLatencies::Summary& latencies) {
  return {{"answers", latencies.answers},
          {"ttft", quantiles_json(latencies.ttft)},
          {"tpot", quantiles_json(latencies.tpot)},
          {"e2e", quantiles_json(latencies.e2e)}};
}

}  // namespace valora::server
