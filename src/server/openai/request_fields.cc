#include "server/openai/request_fields.h"

#include <map>

namespace valora::server {
namespace {

struct EndpointFields {
  std::vector<RequestField> fields;
  std::vector<std::string> refused;
};
using FieldTable = std::map<std::string, EndpointFields, std::less<>>;

RequestField::Effect effect_of(const OrderedJson& entry) {
  const auto& effect = entry.at("effect").get_ref<const std::string&>();
  if (effect == "honoured") return RequestField::Effect::kHonoured;
  return effect == "none" ? RequestField::Effect::kNone : RequestField::Effect::kRefused;
}

FieldTable read_table() {
  FieldTable table;
  const OrderedJson text = OrderedJson::parse(request_fields_text());
  for (const auto& [name, entries] : text.at("fields").items())
    for (const OrderedJson& entry : entries)
      for (const auto& path : entry.at("endpoints")) {
        EndpointFields& endpoint = table[path.get<std::string>()];
        endpoint.fields.push_back({name, effect_of(entry), entry});
        if (endpoint.fields.back().effect == RequestField::Effect::kRefused &&
            !entry.contains("unless"))
          endpoint.refused.push_back(name);
      }
  return table;
}

const EndpointFields& fields_of(std::string_view path) {
  static const FieldTable table = read_table();
  static const EndpointFields none;
  const auto found = table.find(table_path(path));
  return found == table.end() ? none : found->second;
}

}  // namespace

std::string_view table_path(std::string_view path) {
  constexpr std::string_view kTwice[] = {"/classify", "/rerank", "/score"};
  for (const std::string_view known : kTwice)
    if (path.starts_with("/v") && path.ends_with(known)) return known;
  return path;
}

const std::vector<RequestField>& request_fields(std::string_view path) {
  return fields_of(path).fields;
}

const std::vector<std::string>& refused_fields(std::string_view path) {
  return fields_of(path).refused;
}

}  // namespace valora::server
