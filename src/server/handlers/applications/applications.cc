#include "server/handlers/handlers.h"

#include "server/handlers/status/stats_json.h"
#include "server/openai/json_text.h"

namespace valora::server {

void handle_applications(const std::shared_ptr<Service>& service, HttpRequest request,
                         std::shared_ptr<Exchange> exchange) {
  OrderedJson out = OrderedJson::object();
  out["object"] = "list";
  OrderedJson& data = out["data"] = OrderedJson::array();
  const EngineStats stats = service->engine.stats();
  const ServedUser* user = service->user_of(request);
  for (const auto& application : service->applications.all())
    if (user == nullptr || user->may_name(application->settings.name))
      data.push_back(application_json(*application, stats));
  exchange->respond({.body = to_text(out)});
}

}  // namespace valora::server
