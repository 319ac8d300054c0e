#include "server/base_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/strings.h"

namespace valora::server {

bool is_base_name(const std::vector<std::string>& base_names, std::string_view model) {
  return std::find(base_names.begin(), base_names.end(), model) != base_names.end();
}

std::string_view without_base_prefix(const std::vector<std::string>& base_names,
                                     std::string_view model) {
  for (const std::string& base : base_names)
    if (model.size() > base.size() + 1 && model.starts_with(base) && model[base.size()] == ':')
      return model.substr(base.size() + 1);
  return model;
}

Status check_not_base_name(const std::vector<std::string>& base_names, std::string_view adapter) {
  if (is_base_name(base_names, adapter))
    return invalid(fmt::format("\"{}\" is a name of the base model; choose another adapter name",
                               shortened(adapter)),
                   "lora_name");
  const std::string_view suffix = without_base_prefix(base_names, adapter);
  if (suffix.size() == adapter.size()) return {};
  return invalid(
      fmt::format("the adapter name \"{}\" begins with the base model's name and a colon, which "
                  "requests read as the adapter \"{}\"; choose another adapter name",
                  shortened(adapter), shortened(suffix)),
      "lora_name");
}

}  // namespace valora::server
