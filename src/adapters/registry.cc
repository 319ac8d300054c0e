#include "adapters/registry.h"

#include "base/text/strings.h"
#include "base/text/visible_text.h"

namespace valora::adapters {
namespace {

constexpr size_t kMaxNameBytes = 256;

// Drops the tensors, because the engine holds copies and thousands of adapters have many targets.
std::shared_ptr<const AdapterSpec> without_tensors(const AdapterSpec& spec) {
  auto kept = std::make_shared<AdapterSpec>(spec);
  kept->file = nullptr;
  kept->targets.clear();
  for (TaskHead& head : kept->heads) {
    head.weight.bytes = {};
    if (head.bias) head.bias->bytes = {};
  }
  return kept;
}

}  // namespace

Status check_adapter_name(std::string_view name) {
  if (name.empty()) return invalid("an adapter's name must not be empty", "lora_name");
  if (name.size() > kMaxNameBytes)
    return invalid("the adapter name \"" + shortened(name, 40) + "\" is longer than " +
                       std::to_string(kMaxNameBytes) + " bytes",
                   "lora_name");
  if (name.find_first_of(",\"") != name.npos || has_hidden_characters(name) ||
      has_invisible_characters(name))
    return invalid(
        "an adapter's name must be UTF-8 without commas, double quotes, control characters, "
        "bidirectional controls and invisible characters",
        "lora_name");
  return {};
}

Status AdapterRegistry::check_generation(const std::string& name,
                                         std::optional<uint64_t> expected) const {
  const AdapterEntry* entry = find(name);
  const uint64_t actual = entry ? entry->generation : 0;
  if (!expected || *expected == actual) return {};
  return Error{ErrorCode::kConflict,
               "adapter " + name + " is at generation " + std::to_string(actual) + ", not " +
                   std::to_string(*expected),
               "expected_generation"};
}

Result<AdapterRegistry::Prepared> AdapterRegistry::prepare(const std::string& name,
                                                           std::shared_ptr<const AdapterSpec> spec,
                                                           AddOptions options) {
  VALORA_CHECK(check_adapter_name(name));
  VALORA_CHECK(check_generation(name, options.expected_generation));
  if (!options.replace && find(name))
    return invalid("adapter " + name + " is already loaded", "lora_name");
  Entries place;
  place.emplace(name, AdapterEntry{next_id_++, name, spec->path, ++generation_, options.loaded_at,
                                   without_tensors(*spec), options.pinned});
  return place.extract(place.begin());
}

void AdapterRegistry::add(Prepared prepared) noexcept {
  entries_.erase(prepared.key());
  entries_.insert(std::move(prepared));
}

Result<AdapterEntry> AdapterRegistry::remove(const std::string& name,
                                             std::optional<uint64_t> expected_generation) {
  const auto it = entries_.find(name);
  if (it == entries_.end())
    return not_found("adapter " + shortened(name) + " is not loaded", "lora_name");
  VALORA_CHECK(check_generation(name, expected_generation));
  AdapterEntry removed = std::move(it->second);
  entries_.erase(it);
  ++generation_;
  return removed;
}

Result<const AdapterEntry*> AdapterRegistry::find(
    std::string_view name, std::optional<uint64_t> expected_generation) const {
  const AdapterEntry* entry = find(name);
  if (!entry)
    return not_found("adapter " + shortened(std::string(name)) + " is not loaded", "lora_name");
  VALORA_CHECK(check_generation(entry->name, expected_generation));
  return entry;
}

void AdapterRegistry::set_pinned(std::string_view name, bool pinned) noexcept {
  if (const auto it = entries_.find(name); it != entries_.end()) it->second.pinned = pinned;
}

const AdapterEntry* AdapterRegistry::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

const AdapterEntry* AdapterRegistry::find(AdapterId id) const {
  for (const auto& [name, entry] : entries_)
    if (entry.id == id) return &entry;
  return nullptr;
}

std::vector<AdapterEntry> AdapterRegistry::list() const {
  std::vector<AdapterEntry> entries;
  for (const auto& [name, entry] : entries_) entries.push_back(entry);
  return entries;
}

}  // namespace valora::adapters
