// The adapters of a FakeEngine: names, generations and load errors. Not thread-safe.
#pragma once

#include <map>
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
  // The heads of adapters that are loaded from now on.
  void set_heads(Heads heads) { heads_ = std::move(heads); }

  // Fails for paths that end with "missing" or "broken".
  Result<AdapterCard> load(const LoadAdapter& request);
  Status unload(const std::string& name, std::optional<uint64_t> expected_generation);
  bool contains(const std::string& name) const { return cards_.contains(name); }
  std::vector<AdapterCard> cards() const;

 private:
  std::map<std::string, AdapterCard> cards_;
  Heads heads_;
  uint64_t generation_ = 0;
};

}  // namespace valora::testing
