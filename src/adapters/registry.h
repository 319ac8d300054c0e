// The loaded adapters by name. Not thread-safe: the caller serialises access.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter_id.h"
#include "adapters/adapter_spec.h"
#include "base/result.h"

namespace valora::adapters {

struct AdapterEntry {
  AdapterId id = 0;
  std::string name;
  std::string path;
  uint64_t generation = 0;                  // the registry's generation when this entry was added
  int64_t loaded_at = 0;                    // Unix time in seconds
  std::shared_ptr<const AdapterSpec> spec;  // as added, without targets, file or tensor data
  bool pinned = false;
};

struct AddOptions {
  bool replace = false;  // an existing name gets the new content under a new id
  bool pinned = false;
  int64_t loaded_at = 0;
  // Compare and swap: the generation of the name's current entry, 0 for none.
  std::optional<uint64_t> expected_generation;
};

class AdapterRegistry {
  using Entries = std::map<std::string, AdapterEntry, std::less<>>;

 public:
  // An entry that is allocated but not yet inserted.
  using Prepared = Entries::node_type;
  static const AdapterEntry& entry_of(const Prepared& prepared) { return prepared.mapped(); }

  // Errors: kInvalidArgument for an invalid or existing name; kConflict if expected_generation does
  // not match. Modifies no entry.
  Result<Prepared> prepare(const std::string& name, std::shared_ptr<const AdapterSpec> spec,
                           AddOptions options = {});
  // Inserts an entry, replacing any entry of the same name. Does not allocate. Nothing else may
  // modify the registry between prepare() and add().
  void add(Prepared prepared) noexcept;
  // Returns the removed entry. Errors: kNotFound; kConflict as for prepare().
  Result<AdapterEntry> remove(const std::string& name,
                              std::optional<uint64_t> expected_generation = {});

  // The entry of this name, with the expected generation if one is given. Errors: see remove().
  Result<const AdapterEntry*> find(std::string_view name,
                                   std::optional<uint64_t> expected_generation) const;
  void set_pinned(std::string_view name, bool pinned) noexcept;
  // Null if not found. Valid until the next add() or remove().
  const AdapterEntry* find(std::string_view name) const;
  const AdapterEntry* find(AdapterId id) const;
  std::vector<AdapterEntry> list() const;  // sorted by name
  size_t size() const { return entries_.size(); }
  uint64_t generation() const { return generation_; }  // increases with each add() and remove()

 private:
  Status check_generation(const std::string& name, std::optional<uint64_t> expected) const;

  Entries entries_;
  uint64_t generation_ = 0;
  AdapterId next_id_ = 0;
};

// Names appear in URLs, logs and comma-separated metric labels, and people read them: 1 to 256
// bytes of UTF-8 without control characters, bidirectional controls, invisible characters
// (zero-width ones), commas and double quotes. Error: kInvalidArgument.
Status check_adapter_name(std::string_view name);

}  // namespace valora::adapters
