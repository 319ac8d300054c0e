// Adapters and their task heads as requests hold them.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapters/adapter_id.h"
#include "adapters/adapter_spec.h"
#include "api/answer_form.h"
#include "base/digest.h"
#include "base/result.h"
#include "memory/identity.h"

namespace valora::serving {

// The weights of an adapter or of a head. Only the tensor side knows what they are
// (engine/adapter_tensors.h); here they are kept alive.
struct Tensors {
  virtual ~Tensors() = default;
};

struct Language;  // serving/prompts/language.h

struct LoadedHead {
  std::string name;
  std::vector<std::string> labels;
  adapters::ProblemType problem_type;
  bool add_generation_prompt = false;
  std::shared_ptr<const Tensors> tensors;
};

struct LoadedAdapter {
  adapters::AdapterId id = 0;
  std::string name;
  Digest digest;
  memory::AdapterNeed need;  // of the pool; no blocks: `tensors` owns its memory
  // Of its whole matrices, which adapters with the same bytes share.
  std::vector<memory::AdapterNeed> parts;
  // In the pool, the weights can be read only while a running request holds the adapter.
  std::shared_ptr<const Tensors> tensors;
  bool has_weights = false;  // false: heads only, the model runs as the base
  bool on_decoder = false;   // targets the decoder, so its tokens need a segment
  int rank = 0;              // the highest of its modules
  // It acts from the last place of these tokens in a prompt on (activated LoRA); empty: always.
  std::vector<int32_t> invocation;
  // Of its values (engine/merge_bound.h): false as long as only its headers were read.
  std::shared_ptr<const std::atomic<bool>> safe_to_merge;
  // Targets the vision tower or the projector, so its requests have their own visual embeddings.
  bool on_visuals = false;
  // It holds values that replace the base model's, so it is used alone and at scale 1.
  bool replaces = false;
  std::vector<LoadedHead> heads;
  std::shared_ptr<const Language>
      language;  // of an adapter with tokens of its own; null: the base's

  // Of all its memory in the pool.
  std::vector<memory::AdapterNeed> needs() const;
  // Whether its decoder part may be merged into the weights that other requests run on.
  bool mergeable() const {
    return on_decoder && invocation.empty() && safe_to_merge && *safe_to_merge;
  }
};

// An adapter of a request. The request keeps it alive, even if its name is unloaded or replaced.
struct AppliedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  float scale = 1;
  std::optional<std::string> head = {};  // LoadAdapter::head of the requested name
  AnswerForm form = {};                  // LoadAdapter::form of it
};

inline bool changes_visuals(const AppliedAdapter& use) {
  return use.adapter->on_visuals && use.scale != 0;
}

// The KvIdentity::adapter of a list of adapters with scales. Digest{} for the base model and for
// adapters that have heads only.
Digest identity_of(std::span<const AppliedAdapter> adapters);
// The first token of a prompt that adapters act on: 0, or of activated LoRA the begin of its last
// invocation; kNever without one, as generated tokens invoke nothing.
inline constexpr int kNever = std::numeric_limits<int>::max();
int acts_from(std::span<const AppliedAdapter> adapters, std::span<const int32_t> prompt);
// kInvalidArgument if an adapter is used in a way that has no exact answer.
Status check_uses(std::span<const AppliedAdapter> adapters);
// Those in the pool, parts included, each content once.
std::vector<memory::AdapterNeed> needs_of(std::span<const AppliedAdapter> adapters);
// The cache key of an input's visual embeddings: its pixels, and the adapters that target the tower
// or the projector.
Digest visual_key(std::span<const AppliedAdapter> adapters, const Digest& input);

}  // namespace valora::serving
