// The loaded adapters by name. Without locks: the caller serialises access.
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
  uint64_t generation = 0;                  // the registry's generation when this was loaded
  int64_t loaded_at = 0;                    // Unix time in seconds
  std::shared_ptr<const AdapterSpec> spec;  // as added, without targets, file and tensors' bytes
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
  // An entry with its place in the registry, which it does not take yet.
  using Prepared = Entries::node_type;
  static const AdapterEntry& entry_of(const Prepared& prepared) { return prepared.mapped(); }

  // Errors: kInvalidArgument for an invalid or existing name; kConflict if expected_generation does
  // not match. Changes no entry.
  Result<Prepared> prepare(const std::string& name, std::shared_ptr<const AdapterSpec> spec,
                           AddOptions options = {});
  // Puts an entry into its place, instead of one of that name. Takes no memory. Between prepare()
  // and this nothing else may change the registry.
  void add(Prepared prepared) noexcept;
  // Returns the removed entry. Errors: kNotFound; kConflict as above.
  Result<AdapterEntry> remove(const std::string& name,
                              std::optional<uint64_t> expected_generation = {});

  // The entry of a name that has this generation, if one is expected. Errors as those of remove().
  Result<const AdapterEntry*> find(std::string_view name,
                                   std::optional<uint64_t> expected_generation) const;
  void set_pinned(std::string_view name, bool pinned) noexcept;
  // Null if there is none. Valid until the next add() or remove().
  const AdapterEntry* find(std::string_view name) const;
  const AdapterEntry* find(AdapterId id) const;
  std::vector<AdapterEntry> list() const;  // by name
  size_t size() const { return entries_.size(); }
  uint64_t generation() const { return generation_; }  // of the last change; strictly increasing

 private:
  Status check_generation(const std::string& name, std::optional<uint64_t> expected) const;

  Entries entries_;
  uint64_t generation_ = 0;
  AdapterId next_id_ = 0;
};

// Names appear in URLs, logs and comma-separated metric labels, and are read by people: 1 to 256
// bytes of UTF-8 without control characters, bidirectional controls, characters that are not seen
// (zero-width ones), commas and double quotes. Error:
// kInvalidArgument.
Status check_adapter_name(std::string_view name);

}  // namespace valora::adapters
