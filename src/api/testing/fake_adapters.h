// The adapters of a FakeEngine: names, generations and load errors. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/cards.h"
#include "api/load_adapter.h"
#include "base/result.h"

namespace valora::testing {

using Heads = decltype(AdapterCard::heads);

class FakeAdapters {
 public:
  void add(const std::string& name, Heads heads);
  // Sets the heads of adapters loaded from now on.
  void set_heads(Heads heads) { heads_ = std::move(heads); }

  // Sets the highest number of names; more get kUnavailable.
  void set_limit(size_t count) { limit_ = count; }

  // Fails for paths that end with "missing" or "broken".
  Result<AdapterCard> load(const LoadAdapter& request);
  Status unload(const std::string& name, std::optional<uint64_t> expected_generation);
  // Fails with kUnavailable for names that end with "huge".
  Status pin(const std::string& name, bool pinned, std::optional<uint64_t> expected_generation);
  bool contains(const std::string& name) const { return cards_.contains(name); }
  std::vector<AdapterCard> cards() const;
  // The name under which this adapter was loaded (LoadAdapter::same_as).
  std::string loaded_name(const std::string& name) const;

 private:
  std::map<std::string, AdapterCard> cards_;
  std::map<std::string, std::string> aliases_;  // alias -> loaded name
  Heads heads_;
  size_t limit_ = SIZE_MAX;
  uint64_t generation_ = 0;
};

}  // namespace valora::testing
