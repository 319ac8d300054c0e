// The table of served adapters.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/registry.h"
#include "api/cards.h"
#include "api/load_adapter.h"
#include "base/digest.h"
#include "base/result.h"
#include "serving/adapters/loaded_adapter.h"

namespace valora::serving {

// The adapter behind a name. Several names may share one adapter.
struct ServedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  std::optional<std::string> head;  // LoadAdapter::head
  std::string question;
  AnswerForm form;
};

// The served adapters by name. Thread-safe. Requests keep their LoadedAdapter when its name is
// unloaded or replaced.
class AdapterTable {
 public:
  AdapterTable(size_t max_adapters) : max_adapters_(max_adapters) {}

  // Checks a request without reading files: the name, whether it is taken, and the limit.
  Status check(const LoadAdapter& request) const;
  struct Added {
    AdapterCard card;
    std::vector<memory::AdapterNeed> before = {};  // needs of the name's previous adapter
    // Those contents among them that no name uses any longer.
    std::vector<Digest> replaced = {};
  };
  Result<Added> add(const LoadAdapter& request, std::shared_ptr<const adapters::AdapterSpec> spec,
                    std::shared_ptr<LoadedAdapter> loaded);
  // Adds a name for the adapter request.same_as; kNotFound if that is not loaded. Every name counts
  // towards max_adapters.
  Result<AdapterCard> add_name(const LoadAdapter& request);
  struct Removed {
    std::vector<memory::AdapterNeed> needs;  // needs of the name's adapter
    // Those contents among them that no name uses any longer.
    std::vector<Digest> unused;
  };
  Result<Removed> remove(const std::string& name, std::optional<uint64_t> expected_generation);
  Result<ServedAdapter> find(const std::string& name) const;
  // The needs of the adapter and its parts. Errors: kNotFound; kConflict: the name has another
  // generation.
  Result<std::vector<memory::AdapterNeed>> needs_of_name(
      const std::string& name, std::optional<uint64_t> expected_generation) const;
  // Updates the name's card. No effect if the name does not exist.
  void set_pinned(const std::string& name, bool pinned) noexcept;
  // True if a pinned name has this content, of an adapter or a part.
  bool pins(const Digest& content) const;
  std::vector<AdapterCard> cards() const;
  std::optional<AdapterCard> card(const std::string& name) const;

 private:
  using Served = std::map<adapters::AdapterId, ServedAdapter>;

  static Served::node_type node_for(ServedAdapter served);
  // The contents of the adapter that no served one would have if `left` were removed.
  std::vector<Digest> unused_without(adapters::AdapterId left, const LoadedAdapter& adapter) const;

  size_t max_adapters_;
  mutable std::mutex mutex_;
  adapters::AdapterRegistry registry_;
  Served served_;
};

}  // namespace valora::serving
