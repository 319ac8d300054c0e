#include "adapters/targets/module_table.h"

#include <algorithm>

namespace valora::adapters {
namespace {

// The name without its layer index: the same for all linears of one kind.
std::string without_layer(const std::string& name) {
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1)) {
    const size_t end = name.find_first_not_of("0123456789", dot + 1);
    if (end > dot + 1 && end != name.npos && name[end] == '.')
      return name.substr(0, dot) + name.substr(end);
  }
  return name;
}

}  // namespace

const char* module_kind_name(ModuleKind kind) {
  switch (kind) {
    case ModuleKind::kEmbedding: return "embedding";
    case ModuleKind::kHead: return "output layer";
    case ModuleKind::kUnread: return "linear without effect";
    case ModuleKind::kOther: return "other";
    case ModuleKind::kLinear: break;
  }
  return "linear";
}

ModuleTable::ModuleTable(std::vector<Module> modules, std::vector<PrefixAlias> aliases,
                         int64_t hidden_size)
    : modules_(std::move(modules)), aliases_(std::move(aliases)), hidden_size_(hidden_size) {
  std::stable_sort(aliases_.begin(), aliases_.end(),
                   [](const auto& a, const auto& b) { return a.alias.size() > b.alias.size(); });
  first_of_.fill(-1);
  std::unordered_map<std::string, int> first_like;
  for (size_t i = 0; i < modules_.size(); ++i) {
    const int index = static_cast<int>(i);
    by_name_.emplace(modules_[i].name, index);
    int& first = first_of_[static_cast<size_t>(modules_[i].kind)];
    if (first < 0) first = index;
    first_like_.push_back(first_like.emplace(without_layer(modules_[i].name), index).first->second);
  }
}

std::optional<int> ModuleTable::find(std::string_view name) const {
  if (const auto it = by_name_.find(std::string(name)); it != by_name_.end()) return it->second;
  for (const PrefixAlias& alias : aliases_) {
    if (!name.starts_with(alias.alias)) continue;
    const auto it = by_name_.find(alias.canonical + std::string(name.substr(alias.alias.size())));
    if (it != by_name_.end()) return it->second;
  }
  return std::nullopt;
}

std::vector<std::string> ModuleTable::names(int module) const {
  const std::string& canonical = modules_[module].name;
  std::vector<std::string> names{canonical};
  for (const PrefixAlias& alias : aliases_) {
    if (!canonical.starts_with(alias.canonical)) continue;
    std::string name = alias.alias + canonical.substr(alias.canonical.size());
    if (find(name) == module && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

}  // namespace valora::adapters
