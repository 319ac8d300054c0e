// An adapter as the runner applies it, and the table of those that are served.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "adapters/adapter_spec.h"
#include "adapters/registry.h"
#include "api/cards.h"
#include "api/load_adapter.h"
#include "models/model.h"
#include "ops/lora.h"

namespace valora {

struct LoadedHead {
  std::string name;
  std::vector<std::string> labels;
  adapters::ProblemType problem_type;
  bool add_generation_prompt = false;
  at::Tensor weight;  // float [labels, hidden]
  at::Tensor bias;    // float [labels], or undefined
};

struct LoadedAdapter {
  adapters::AdapterId id = 0;
  std::string name;
  Digest digest;
  ops::AdapterWeights weights;
  bool has_weights = false;  // false: heads alone, the model runs as the base
  bool on_decoder = false;   // touches the decoder: its tokens make a segment
  bool mergeable = false;  // its decoder part may be merged into weights that other requests run on
  bool on_visuals = false;  // touches vision tower or projector: its visual embeddings are its own
  std::vector<LoadedHead> heads;
};

// Weights in the model's dtype and device.
std::shared_ptr<LoadedAdapter> build_adapter(const adapters::AdapterSpec& spec,
                                             const adapters::ModuleTable& modules,
                                             at::ScalarType dtype, at::Device device);

// What one request uses: kept alive by it, whatever becomes of the name meanwhile.
struct AppliedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  float scale = 1;
  std::optional<std::string> head = {};  // LoadAdapter::head of the name that was asked
};

// What stands behind a name. Several names may share one adapter.
struct ServedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  std::optional<std::string> head;  // LoadAdapter's
  std::string question;
};

// The adapters that count, each with its scale; Digest{} where none does.
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

// Thread-safe. A request that holds a LoadedAdapter is not disturbed by unloading or replacing its
// name.
class AdapterTable {
 public:
  AdapterTable(size_t max_adapters) : max_adapters_(max_adapters) {}

  // Checks that need no file, so that a bad request costs nothing.
  Status check(const LoadAdapter& request) const;
  Result<AdapterCard> add(const LoadAdapter& request,
                          std::shared_ptr<const adapters::AdapterSpec> spec,
                          std::shared_ptr<LoadedAdapter> loaded);
  // request.same_as: kNotFound where it is not loaded. Further names count as adapters do.
  Result<AdapterCard> add_name(const LoadAdapter& request);
  Result<std::shared_ptr<const LoadedAdapter>> remove(const std::string& name,
                                                      std::optional<uint64_t> expected_generation);
  Result<ServedAdapter> find(const std::string& name) const;
  std::vector<AdapterCard> cards() const;

 private:
  size_t max_adapters_;
  mutable std::mutex mutex_;
  adapters::AdapterRegistry registry_;
  std::map<adapters::AdapterId, ServedAdapter> served_;
};

}  // namespace valora
