// Adapters in the form that the runner applies, and the table of served adapters.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/registry.h"
#include "api/cards.h"
#include "api/load_adapter.h"
#include "engine/adapter_store.h"
#include "models/model.h"
#include "ops/lora.h"

namespace valora {

struct LoadedHead {
  std::string name;
  std::vector<std::string> labels;
  adapters::ProblemType problem_type;
  bool add_generation_prompt = false;
  at::Tensor weight;  // float [labels, hidden]
  at::Tensor bias;    // float [labels]; undefined if there is none
};

struct LoadedAdapter {
  adapters::AdapterId id = 0;
  std::string name;
  Digest digest;
  memory::AdapterNeed need;  // of the pool; no blocks: `weights` owns its tensors
  // In the pool, the panels can be read only while a running request holds the adapter.
  std::shared_ptr<ops::AdapterWeights> weights = std::make_shared<ops::AdapterWeights>();
  bool has_weights = false;  // false: heads only, the model runs as the base
  bool on_decoder = false;   // targets the decoder, so its tokens need a segment
  int rank = 0;              // the highest of its modules
  // Of its values (engine/merge_bound.h): false as long as only its headers were read.
  std::shared_ptr<const std::atomic<bool>> safe_to_merge;
  // Targets the vision tower or the projector, so its requests have their own visual embeddings.
  bool on_visuals = false;
  std::vector<LoadedHead> heads;

  // Whether its decoder part may be merged into the weights that other requests run on.
  bool mergeable() const { return on_decoder && safe_to_merge && *safe_to_merge; }
};

// An adapter whose panels the store brings to the pool when they are needed, or, without a store,
// one that owns its weights, copied to the model's dtype and device: then the spec has values.
// Heads become float. Errors are those of AdapterStore::add(). Throws c10::Error or std::bad_alloc
// if memory runs out.
Result<std::shared_ptr<LoadedAdapter>> build_adapter(
    std::shared_ptr<const adapters::AdapterSpec> shared, const adapters::ModuleTable& modules,
    at::ScalarType dtype, at::Device device, AdapterStore* store = nullptr);

// An adapter of a request. The request keeps it alive, even if its name is unloaded or replaced.
struct AppliedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  float scale = 1;
  std::optional<std::string> head = {};  // LoadAdapter::head of the requested name
  AnswerForm form = {};                  // LoadAdapter::form of it
};

// The adapter of a name. Several names may share one adapter.
struct ServedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  std::optional<std::string> head;  // LoadAdapter::head
  std::string question;
  AnswerForm form;
};

// Digest of the adapters for which counts(adapter) is true, with their scales. Digest{} if there is
// none.
template <typename Counts>
Digest digest_of(std::span<const AppliedAdapter> adapters, Counts&& counts) {
  DigestBuilder builder;
  bool any = false;
  for (const AppliedAdapter& use : adapters) {
    if (!counts(use)) continue;
    builder.add(use.adapter->digest).add(use.scale);
    any = true;
  }
  return any ? builder.finish() : Digest{};
}

// The served adapters by name. Thread-safe. Unloading or replacing a name does not affect requests
// that hold its LoadedAdapter.
class AdapterTable {
 public:
  AdapterTable(size_t max_adapters) : max_adapters_(max_adapters) {}

  // Checks the request without reading files: the name, whether it is taken, and the limit.
  Status check(const LoadAdapter& request) const;
  struct Added {
    AdapterCard card;
    // The content that the name had before, if no name has it any more.
    std::optional<Digest> replaced;
  };
  Result<Added> add(const LoadAdapter& request, std::shared_ptr<const adapters::AdapterSpec> spec,
                    std::shared_ptr<LoadedAdapter> loaded);
  // Adds a name for the adapter request.same_as; kNotFound if that is not loaded. Every name counts
  // towards max_adapters.
  Result<AdapterCard> add_name(const LoadAdapter& request);
  struct Removed {
    std::shared_ptr<const LoadedAdapter> adapter;
    bool last = false;  // no name has this content any more
  };
  Result<Removed> remove(const std::string& name, std::optional<uint64_t> expected_generation);
  Result<ServedAdapter> find(const std::string& name) const;
  std::vector<AdapterCard> cards() const;

 private:
  using Served = std::map<adapters::AdapterId, ServedAdapter>;

  static Served::node_type node_for(ServedAdapter served);
  bool has_content(const Digest& digest) const;

  size_t max_adapters_;
  mutable std::mutex mutex_;
  adapters::AdapterRegistry registry_;
  Served served_;
};

}  // namespace valora
