#include "api/testing/fake_adapters.h"

#include "base/files/input_folder.h"

namespace valora::testing {

void FakeAdapters::add(const std::string& name, Heads heads) {
  cards_[name] = {.name = name,
                  .path = "/adapters/" + name,
                  .generation = ++generation_,
                  .rank = 8,
                  .bytes = 1024,
                  .heads = std::move(heads),
                  .created = 1700000001};
}

Result<AdapterCard> FakeAdapters::load(const LoadAdapter& request) {
  const auto found = cards_.find(request.name);
  const uint64_t current = found == cards_.end() ? 0 : found->second.generation;
  if (request.expected_generation && *request.expected_generation != current)
    return Error{ErrorCode::kConflict, "the generation is " + std::to_string(current),
                 "expected_generation"};
  if (current != 0 && !request.replace && !request.expected_generation)
    return Error{ErrorCode::kConflict, "it is loaded already", "lora_name"};
  if (current == 0 && cards_.size() >= limit_)
    return Error{ErrorCode::kUnavailable, std::to_string(limit_) + " adapters are loaded", {}};
  if (!request.root.empty() && !InputFolder::open({request.path, request.root}).ok())
    return not_found("no such folder below " + request.root, "lora_path");
  if (request.path.ends_with("missing")) return not_found("no such folder", "lora_path");
  if (request.path.ends_with("broken"))
    return unprocessable(request.path + " has a NaN", "lora_path");
  if (!request.same_as.empty()) aliases_[request.name] = loaded_name(request.same_as);
  return cards_[request.name] = {.name = request.name,
                                 .path = request.path,
                                 .generation = ++generation_,
                                 .rank = 4,
                                 .bytes = 512,
                                 .pinned = request.pinned,
                                 .question = request.question,
                                 .heads = heads_};
}

std::string FakeAdapters::loaded_name(const std::string& name) const {
  const auto found = aliases_.find(name);
  return found == aliases_.end() ? name : found->second;
}

Status FakeAdapters::unload(const std::string& name, std::optional<uint64_t> expected_generation) {
  const auto found = cards_.find(name);
  if (found == cards_.end()) return not_found("The lora adapter '" + name + "' cannot be found.");
  if (expected_generation && *expected_generation != found->second.generation)
    return Error{ErrorCode::kConflict, "another generation", "expected_generation"};
  cards_.erase(found);
  aliases_.erase(name);
  return {};
}

Status FakeAdapters::pin(const std::string& name, bool pinned,
                         std::optional<uint64_t> expected_generation) {
  const auto found = cards_.find(name);
  if (found == cards_.end()) return not_found("adapter " + name + " is not loaded", "lora_name");
  if (expected_generation && *expected_generation != found->second.generation)
    return Error{ErrorCode::kConflict, "another generation", "expected_generation"};
  if (pinned && name.ends_with("huge"))
    return Error{ErrorCode::kUnavailable, "pinned adapters would take 2048 bytes of 1024",
                 "pinned"};
  found->second.pinned = pinned;
  return {};
}

std::vector<AdapterCard> FakeAdapters::cards() const {
  std::vector<AdapterCard> cards;
  for (const auto& [_, card] : cards_) cards.push_back(card);
  return cards;
}

}  // namespace valora::testing
