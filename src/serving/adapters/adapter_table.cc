#include "serving/adapters/adapter_table.h"

#include <algorithm>
#include <ctime>

namespace valora::serving {
namespace {

std::string unmergeable(const LoadedAdapter& adapter) {
  if (!adapter.has_weights) return "it has task heads alone";
  if (!adapter.on_decoder) return "it changes nothing of the decoder's linears";
  if (adapter.mergeable()) return {};
  return "its values are too large for merged weights, or were not read yet";
}

AdapterCard card_of(const adapters::AdapterEntry& entry, const ServedAdapter& served) {
  const adapters::AdapterSpec& spec = *entry.spec;
  AdapterCard card;
  card.name = entry.name;
  card.path = entry.path;
  card.generation = entry.generation;
  card.rank = spec.max_rank;
  card.bytes = spec.bytes;
  card.pinned = entry.pinned;
  if (!served.adapter->has_weights) card.place = WeightsPlace::kNone;
  card.digest = spec.digest;
  card.task = spec.task;
  card.description = spec.description;
  card.question = served.question.empty() ? spec.question : served.question;
  for (const auto& head : spec.heads) card.heads.emplace_back(head.name, head.labels);
  card.head = served.head;
  card.form = served.form;
  card.on_decoder = served.adapter->on_decoder;
  card.on_visuals = served.adapter->on_visuals;
  card.activated = !served.adapter->invocation.empty();
  card.unmergeable = unmergeable(*served.adapter);
  card.merges_among_others = served.adapter->merges() == MergeUse::kAmongOthers;
  card.created = entry.loaded_at;
  card.warnings = spec.warnings;
  card.changes = served.adapter->changes;
  return card;
}

Error too_many_adapters(size_t limit) {
  return {ErrorCode::kUnavailable,
          std::to_string(limit) +
              " adapters are loaded, the limit of --max-cpu-loras; unload one first",
          "lora_name"};
}

Status check_head(const LoadAdapter& request, const adapters::AdapterSpec& spec) {
  if (!request.head || request.head->empty()) return {};
  std::string names;
  for (const adapters::TaskHead& head : spec.heads) {
    if (head.name == *request.head) return {};
    names += (names.empty() ? "" : ", ") + head.name;
  }
  return invalid("the adapter has no head \"" + *request.head +
                     "\"; its heads: " + (names.empty() ? "none" : names),
                 "head");
}

// Calls body(digest) for the adapter and each of its parts.
template <typename Body>
void for_each_content(const LoadedAdapter& adapter, Body&& body) {
  body(adapter.digest);
  for (const memory::AdapterNeed& part : adapter.parts) body(part.digest);
}

}  // namespace

Status AdapterTable::check(const LoadAdapter& request) const {
  VALORA_CHECK(adapters::check_adapter_name(request.name));
  const std::lock_guard lock(mutex_);
  const adapters::AdapterEntry* old = registry_.find(request.name);
  if (old && !request.replace && !request.expected_generation)
    return invalid("The lora adapter '" + request.name +
                       "' has already been loaded. If you want to load the adapter in place, set "
                       "'load_inplace' to true.",
                   "lora_name");
  if (!old && registry_.size() >= max_adapters_) return too_many_adapters(max_adapters_);
  return {};
}

// Created before the registry gets the name, so that every registered name is served.
AdapterTable::Served::node_type AdapterTable::node_for(ServedAdapter served) {
  Served made;
  made.emplace(0, std::move(served));
  return made.extract(made.begin());
}

Result<AdapterTable::Added> AdapterTable::add(const LoadAdapter& request,
                                              std::shared_ptr<const adapters::AdapterSpec> spec,
                                              std::shared_ptr<LoadedAdapter> loaded) {
  VALORA_CHECK(check_head(request, *spec));
  const std::lock_guard lock(mutex_);
  const adapters::AdapterEntry* old = registry_.find(request.name);
  const adapters::AdapterId old_id = old ? old->id : -1;
  if (!old && registry_.size() >= max_adapters_) return too_many_adapters(max_adapters_);
  loaded->name = request.name;
  Served::node_type served = node_for({loaded, request.head, request.question, request.form});
  VALORA_TRY(prepared, registry_.prepare(
                           request.name, std::move(spec),
                           {.replace = request.replace || request.expected_generation.has_value(),
                            .pinned = request.pinned,
                            .loaded_at = std::time(nullptr),
                            .expected_generation = request.expected_generation}));
  Added added{card_of(adapters::AdapterRegistry::entry_of(prepared), served.mapped())};
  const auto before = served_.find(old_id);
  if (before != served_.end()) {
    added.before = before->second.adapter->needs();
    added.replaced = unused_without(old_id, *before->second.adapter);
    for_each_content(*loaded, [&](const Digest& kept) { std::erase(added.replaced, kept); });
  }
  // Nothing allocates from here on: either the name is added with its card, or nothing changes.
  loaded->id = served.key() = adapters::AdapterRegistry::entry_of(prepared).id;
  registry_.add(std::move(prepared));
  if (before != served_.end()) served_.erase(before);
  served_.insert(std::move(served));
  return added;
}

Result<AdapterCard> AdapterTable::add_name(const LoadAdapter& request) {
  const std::lock_guard lock(mutex_);
  const adapters::AdapterEntry* same = registry_.find(request.same_as);
  if (!same) return not_found("the adapter " + request.same_as + " is not loaded", "lora_name");
  VALORA_CHECK(check_head(request, *same->spec));
  const std::shared_ptr<const LoadedAdapter> adapter = served_.at(same->id).adapter;
  Served::node_type served = node_for({adapter, request.head, request.question, request.form});
  VALORA_TRY(prepared, registry_.prepare(request.name, same->spec,
                                         {.pinned = request.pinned, .loaded_at = same->loaded_at}));
  Result<AdapterCard> card =
      card_of(adapters::AdapterRegistry::entry_of(prepared), served.mapped());
  served.key() = adapters::AdapterRegistry::entry_of(prepared).id;
  registry_.add(std::move(prepared));
  served_.insert(std::move(served));
  return card;
}

Result<AdapterTable::Removed> AdapterTable::remove(const std::string& name,
                                                   std::optional<uint64_t> expected_generation) {
  const std::lock_guard lock(mutex_);
  VALORA_TRY(entry, registry_.find(name, expected_generation));
  const auto it = served_.find(entry->id);
  const LoadedAdapter& adapter = *it->second.adapter;
  Removed removed{adapter.needs(), unused_without(entry->id, adapter)};
  // Nothing allocates from here on.
  if (auto gone = registry_.remove(name, expected_generation); !gone.ok()) return gone.error();
  served_.erase(it);
  return removed;
}

std::vector<Digest> AdapterTable::unused_without(adapters::AdapterId left,
                                                 const LoadedAdapter& adapter) const {
  std::vector<Digest> unused;
  if (!adapter.has_weights) return unused;  // it shares the base model's KV
  for_each_content(adapter, [&](const Digest& content) { unused.push_back(content); });
  for (const auto& [id, served] : served_)
    if (id != left)
      for_each_content(*served.adapter,
                       [&](const Digest& content) { std::erase(unused, content); });
  return unused;
}

Result<ServedAdapter> AdapterTable::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const adapters::AdapterEntry* entry = registry_.find(name);
  if (!entry) return not_found("The model `" + name + "` does not exist.", "model");
  return served_.at(entry->id);
}

Result<std::vector<memory::AdapterNeed>> AdapterTable::needs_of_name(
    const std::string& name, std::optional<uint64_t> expected_generation) const {
  const std::lock_guard lock(mutex_);
  VALORA_TRY(entry, registry_.find(name, expected_generation));
  return served_.at(entry->id).adapter->needs();
}

void AdapterTable::set_pinned(const std::string& name, bool pinned) noexcept {
  const std::lock_guard lock(mutex_);
  registry_.set_pinned(name, pinned);
}

bool AdapterTable::pins(const Digest& content) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(served_, [&](const auto& served) {
    const adapters::AdapterEntry* entry = registry_.find(served.first);
    if (!entry || !entry->pinned) return false;
    bool has = false;
    for_each_content(*served.second.adapter, [&](const Digest& each) { has |= each == content; });
    return has;
  });
}

std::vector<AdapterCard> AdapterTable::cards() const {
  const std::lock_guard lock(mutex_);
  std::vector<AdapterCard> cards;
  for (const adapters::AdapterEntry& entry : registry_.list())
    cards.push_back(card_of(entry, served_.at(entry.id)));
  return cards;
}

std::optional<AdapterCard> AdapterTable::card(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const adapters::AdapterEntry* entry = registry_.find(name);
  return entry ? std::optional(card_of(*entry, served_.at(entry->id))) : std::nullopt;
}

}  // namespace valora::serving
