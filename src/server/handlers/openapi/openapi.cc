#include "server/handlers/handlers.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "server/handlers/openapi/schemas.h"
#include "server/handlers/routes.h"
#include "server/openai/json_text.h"

namespace valora::server {
namespace {

constexpr const char* kJsonType = "application/json";

// A route that ends in "/" takes the rest of the path as the parameter {model}.
std::string template_of(const Route& route) {
  return std::string(route.path) + (route.path.ends_with('/') ? "{model}" : "");
}

// The names in braces.
std::vector<std::string> parameters_of(const Route& route) {
  std::vector<std::string> names;
  const std::string path = template_of(route);
  for (size_t open = 0; (open = path.find('{', open)) != path.npos; ++open)
    names.push_back(path.substr(open + 1, path.find('}', open) - open - 1));
  return names;
}

// For example "post_v1_chat_completions".
std::string operation_id(const Route& route) {
  std::string id = std::string(route.method) + template_of(route);
  for (char& c : id)
    c = std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
  return id;
}

OrderedJson operation(const Route& route, bool keys) {
  OrderedJson out = OrderedJson::object();
  out["summary"] = route.summary;
  out["operationId"] = operation_id(route);
  OrderedJson parameters = OrderedJson::array();
  for (const std::string& name : parameters_of(route))
    parameters.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  if (route.method == "GET")
    for (OrderedJson& parameter : query_parameters(route.path))
      parameters.push_back(std::move(parameter));
  if (!parameters.empty()) out["parameters"] = std::move(parameters);
  if (takes_body(route)) {
    const char* type = !route.screen                     ? kJsonType
                       : route.path.ends_with("/frames") ? "image/*"
                                                         : "multipart/form-data";
    out["requestBody"] = {{"required", true},
                          {"content", {{type, {{"schema", body_schema(route.path)}}}}}};
  }
  out["responses"] = responses_of(route, keys);
  if (keys && !route.open)
    out["security"] = OrderedJson::array({OrderedJson::object({{"key", OrderedJson::array()}})});
  return out;
}

OrderedJson components(bool keys) {
  const OrderedJson error = schema_of_shape({{"message", "string: what is wrong"},
                                             {"type", "string: the kind of error"},
                                             {"param", "string or null: the field it is about"},
                                             {"code", "integer: the status"}});
  OrderedJson out = {{"schemas",
                      {{"Error",
                        {{"type", "object"},
                         {"properties", {{"error", error}}},
                         {"required", OrderedJson::array({"error"})}}}}}};
  if (keys) out["securitySchemes"] = {{"key", {{"type", "http"}, {"scheme", "bearer"}}}};
  return out;
}

}  // namespace

void handle_openapi(const std::shared_ptr<Service>& service, HttpRequest,
                    std::shared_ptr<Exchange> exchange) {
  const ServerOptions& options = service->options;
  const bool keys = !options.api_keys.empty() || !service->users.empty();
  OrderedJson paths = OrderedJson::object();
  for (const Route& route : all_routes()) {
    if (route.summary.empty() || find_route(options, route.method, route.path) != &route) continue;
    std::string method(route.method);
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    OrderedJson& path = paths[template_of(route)];
    if (path.is_null()) path = OrderedJson::object();
    path[method] = operation(route, keys);
  }
  OrderedJson out = OrderedJson::object();
  out["openapi"] = "3.1.0";
  out["info"] = {{"title", "valora"},
                 {"version", VALORA_VERSION},
                 {"description",
                  "OpenAI's API for one model with many LoRA adapters. The fields "
                  "of request bodies: docs/request-fields.md"}};
  if (!options.root_path.empty())
    out["servers"] = OrderedJson::array({OrderedJson::object({{"url", options.root_path}})});
  out["paths"] = std::move(paths);
  out["components"] = components(keys);
  exchange->respond({.body = to_text(out)});
}

}  // namespace valora::server
