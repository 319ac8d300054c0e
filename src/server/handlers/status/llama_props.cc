#include "server/handlers/handlers.h"

#include "base/json/json.h"
#include "server/handlers/viewer.h"
#include "server/openai/errors.h"
#include "server/openai/json_text.h"

namespace valora::server {

void handle_props(const std::shared_ptr<Service>& service, HttpRequest request,
                  std::shared_ptr<Exchange> exchange) {
  const std::string name = query_value(request.query, "model").value_or(service->base_name());
  if (!Viewer(*service, request).knows(name))
    return exchange->respond(error_response(model_not_found(name)));
  const ModelCard& model = service->engine.model();
  OrderedJson out = OrderedJson::object();
  out["default_generation_settings"] = {{"n_ctx", model.max_model_len}};
  out["modalities"] = {{"vision", model.images}, {"audio", false}};
  // Prompts describe tools where the template does not.
  out["chat_template_caps"] = {{"supports_tools", true}};
  // The template shows whether thoughts can be switched off. It is shown where /tokenizer_info is.
  if (const auto& info = service->options.tokenizer_info)
    if (const Json known = Json::parse(*info); known["chat_template"].is_string())
      out["chat_template"] = known["chat_template"];
  exchange->respond({.body = to_text(out)});
}

}  // namespace valora::server
