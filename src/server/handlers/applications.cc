#include "server/handlers/applications.h"

#include <algorithm>
#include <optional>

#include "server/openai/json_text.h"

namespace valora::server {
namespace {

template <typename T>
OrderedJson or_null(const std::optional<T>& value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

// `values` has a value or none for each target.
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

OrderedJson details(const ServedApplication& application, const EngineStats& stats) {
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
  return out;
}

}  // namespace

void handle_applications(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  OrderedJson out = OrderedJson::object();
  out["object"] = "list";
  OrderedJson& data = out["data"] = OrderedJson::array();
  const EngineStats stats = service->engine.stats();
  const ServedUser* user = service->user_of(request);
  for (const auto& application : service->applications.all())
    if (user == nullptr || user->may_name(application->settings.name))
      data.push_back(details(*application, stats));
  exchange->respond({.body = to_text(out)});
}

}  // namespace valora::server
