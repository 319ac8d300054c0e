#include "server/handlers/openapi/schemas.h"

#include <fmt/format.h>

#include <string>

#include "server/openai/request_fields.h"

namespace valora::server {
namespace {

constexpr std::string_view kList = "list", kListOf = "list of ", kOr = " or ";

void add_type(std::string_view type, OrderedJson& types, OrderedJson& out) {
  if (!type.starts_with(kList)) return types.push_back(std::string(type));
  types.push_back("array");
  OrderedJson& items = out["items"] = OrderedJson::object();
  if (type.starts_with(kListOf)) items["type"] = std::string(type.substr(kListOf.size()));
}

// text: "TYPE or TYPE: meaning"
OrderedJson schema_of_text(std::string_view text) {
  const size_t end = text.find(": ");
  std::string_view rest = text.substr(0, end);
  OrderedJson out = OrderedJson::object(), types = OrderedJson::array();
  for (size_t at; (at = rest.find(kOr)) != rest.npos; rest.remove_prefix(at + kOr.size()))
    add_type(rest.substr(0, at), types, out);
  add_type(rest, types, out);
  out["type"] = types.size() == 1 ? types[0] : types;
  out["description"] = std::string(text.substr(end + 2));
  return out;
}

OrderedJson schema_of_object(const OrderedJson& shape) {
  const auto own = shape.find("");
  OrderedJson out = own == shape.end() ? OrderedJson{{"type", "object"}}
                                       : schema_of_text(own->get_ref<const std::string&>());
  OrderedJson &properties = out["properties"] = OrderedJson::object(),
              required = OrderedJson::array();
  for (const auto& [key, field] : shape.items()) {
    if (key.empty()) continue;
    const bool optional = key.ends_with('?');
    const std::string name = key.substr(0, key.size() - (optional ? 1 : 0));
    properties[name] = schema_of_shape(field);
    if (!optional) required.push_back(name);
  }
  out["required"] = std::move(required);
  return out;
}

}  // namespace

OrderedJson schema_of_shape(const OrderedJson& shape) {
  if (shape.is_string()) return schema_of_text(shape.get_ref<const std::string&>());
  if (shape.is_array()) return {{"type", "array"}, {"items", schema_of_shape(shape.at(0))}};
  return schema_of_object(shape);
}

OrderedJson answer_content(std::string_view method, std::string_view path) {
  static const OrderedJson table = OrderedJson::parse(answer_shapes_text());
  auto found = table.find(fmt::format("{} {}", method, path));
  if (found == table.end()) found = table.find(std::string(table_path(path)));
  OrderedJson out = OrderedJson::object();
  if (found == table.end()) return out;
  for (const auto& [type, shape] : found->items()) out[type]["schema"] = schema_of_shape(shape);
  return out;
}

}  // namespace valora::server
