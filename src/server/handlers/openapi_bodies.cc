#include "server/handlers/openapi_bodies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "server/handlers/upload_lora.h"
#include "server/openai/request_fields.h"

namespace valora::server {
namespace {

struct LoraField {
  const char* name;
  const char* type;
  const char* meaning;
};

constexpr std::array kLoadFields = {
    LoraField{"lora_name", "string", "the name in requests"},
    LoraField{"lora_path", "string", "a folder on the server"},
    LoraField{"load_inplace", "boolean", "the name may exist already; its requests keep the old"},
    LoraField{"pinned", "boolean", "its weights never leave the memory pool"},
    LoraField{"lazy", "boolean", "values are read when a request first needs them"},
    LoraField{"expected_generation", "integer", "409 unless the name has this one; 0: none"},
};

OrderedJson lora_schema(bool load) {
  OrderedJson properties = OrderedJson::object();
  for (const LoraField& field : kLoadFields)
    if (load || field.name == std::string_view("lora_name") ||
        field.name == std::string_view("expected_generation"))
      properties[field.name] = {{"type", field.type}, {"description", field.meaning}};
  OrderedJson required = OrderedJson::array({"lora_name"});
  if (load) required.push_back("lora_path");
  return {{"type", "object"}, {"properties", properties}, {"required", required}};
}

OrderedJson upload_schema() {
  OrderedJson out = lora_schema(true);
  OrderedJson& properties = out["properties"];
  properties.erase("lora_path");
  const OrderedJson file = {{"type", "string"}, {"format", "binary"}};
  for (const char* name : {"adapter_config.json", "adapter_model.safetensors", "valora.json"})
    properties[name] = file;
  out["required"] = {"lora_name", "adapter_config.json", "adapter_model.safetensors"};
  return out;
}

// Fields that accept values of several types; the example shows only one of them.
bool takes_several_types(std::string_view field) {
  constexpr std::array kFields = {"stop",  "prompt",      "input",       "tool_choice", "logprobs",
                                  "model", "guided_json", "activation",  "head",        "user",
                                  "text",  "prediction",  "instructions"};
  return std::ranges::find(kFields, field) != kFields.end();
}

OrderedJson field_schema(const std::string& field, const OrderedJson& example) {
  OrderedJson out = OrderedJson::object();
  if (takes_several_types(field)) return out;
  if (example.is_boolean())
    out["type"] = "boolean";
  else if (example.is_string())
    out["type"] = "string";
  else if (example.is_number_integer())
    out["type"] = "integer";
  else if (example.is_number())
    out["type"] = "number";
  else
    out["type"] = example.is_array() ? "array" : "object";
  if (example.is_array()) out["items"] = OrderedJson::object();
  return out;
}

}  // namespace

OrderedJson body_schema(std::string_view path) {
  if (path == kUploadPath) return upload_schema();
  if (path.ends_with("_lora_adapter")) return lora_schema(path == "/v1/load_lora_adapter");
  static const OrderedJson table = OrderedJson::parse(request_fields());
  const auto found = table.find(std::string(path == "/v1/classify" ? "/classify" : path));
  OrderedJson out = {{"type", "object"}};
  if (found == table.end()) return out;
  OrderedJson& properties = out["properties"] = OrderedJson::object();
  for (const auto& [field, example] : (*found)["honoured"].items())
    properties[field] = field_schema(field, example);
  for (const auto& [field, example] : (*found)["no_effect"].items()) {
    properties[field] = field_schema(field, example);
    properties[field]["description"] = "accepted, without effect";
  }
  std::vector<std::string> refused;
  for (const auto& [field, _] : (*found)["refused"].items()) refused.push_back(field);
  if (!refused.empty())
    out["description"] =
        fmt::format("Refused with 400, unless they ask for nothing: {}.", fmt::join(refused, ", "));
  return out;
}

OrderedJson responses_of(const Route& route, bool keys) {
  OrderedJson out = OrderedJson::object();
  const auto add = [&](const char* status, const char* meaning) {
    out[status] = {
        {"description", meaning},
        {"content",
         {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  };
  out["200"] = {{"description", "The answer"}};
  if (route.method == "POST" && !route.open) {
    add("400", "A field is wrong or not supported; `param` names it");
    add("413", "The body is too large");
  }
  if (keys && !route.open) {
    add("401", "The API key is missing or wrong");
    add("403", "The key's user may not do this");
  }
  if (route.model_work || route.path.ends_with('/')) add("404", "There is no such model");
  if (route.model_work) {
    add("429", "Too many requests wait; Retry-After says when to come again");
    add("503", "The server drains, or a limit of its memory is reached");
  }
  add("default", "An error");
  return out;
}

}  // namespace valora::server
