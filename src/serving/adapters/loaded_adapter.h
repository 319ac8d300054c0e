// Adapters and their task heads, as held by requests.
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
#include "api/cards.h"
#include "base/digest.h"
#include "base/labels.h"
#include "base/result.h"
#include "memory/identity.h"

namespace valora::serving {

// The weights of an adapter or head, kept alive here. Only the tensor side knows their type
// (engine/adapters/adapter_tensors.h).
struct Tensors {
  virtual ~Tensors() = default;
};

struct Language;  // serving/prompts/language.h

struct LoadedHead {
  std::string name;
  Labels labels;
  adapters::ProblemType problem_type;
  bool add_generation_prompt = false;
  std::shared_ptr<const Tensors> tensors;
};

// Whether an adapter may be merged into the weights of a step (engine/adapters/merge_bound.h).
enum class MergeUse : uint8_t {
  kNever,
  kAlone,        // only if all requests of the step are its own
  kAmongOthers,  // with requests of others, too, from which it is subtracted
};

struct LoadedAdapter {
  adapters::AdapterId id = 0;
  std::string name;
  Digest digest;
  memory::AdapterNeed need;  // its need in the pool; without blocks, `tensors` owns its memory
  // Whole matrices, which adapters with the same bytes share.
  std::vector<memory::AdapterNeed> parts;
  // While in the pool, the weights may be read only if a running request holds the adapter.
  std::shared_ptr<const Tensors> tensors;
  bool has_weights = false;          // false: heads only, so the model runs as the base model
  std::vector<ChangedPart> changes;  // in the order of changed_parts()
  bool on_decoder = false;           // targets the decoder, so its tokens need a segment
  int rank = 0;                      // the highest rank of its modules
  // Activated LoRA: it applies from the last occurrence of these tokens in a prompt on; empty:
  // always.
  std::vector<int32_t> invocation;
  // Depends on the values: kNever while only the headers have been read.
  std::shared_ptr<const std::atomic<MergeUse>> merge_use;
  // Targets the vision tower or the projector, so its requests have separate visual embeddings.
  bool on_visuals = false;
  // Holds values that replace the base model's, so it must be used alone and at scale 1.
  bool replaces = false;
  std::vector<LoadedHead> heads;
  std::shared_ptr<const Language> language;  // its own vocabulary's; null: the base model's

  // All its needs in the pool.
  std::vector<memory::AdapterNeed> needs() const;
  // How its decoder part may be merged.
  MergeUse merges() const {
    return on_decoder && invocation.empty() && merge_use ? merge_use->load() : MergeUse::kNever;
  }
  bool mergeable() const { return merges() != MergeUse::kNever; }
};

// An adapter of a request, which keeps it alive even if its name is unloaded or replaced.
struct AppliedAdapter {
  std::shared_ptr<const LoadedAdapter> adapter;
  float scale = 1;
  std::optional<std::string> head = {};  // LoadAdapter::head of the requested name
  AnswerForm form = {};                  // LoadAdapter::form of that name
};

inline bool changes_visuals(const AppliedAdapter& use) {
  return use.adapter->on_visuals && use.scale != 0;
}

// The KvIdentity::adapter of a list of adapters with scales. Digest{} for the base model and for
// adapters with heads only.
Digest identity_of(std::span<const AppliedAdapter> adapters);
// The first prompt token that adapters apply to: 0, or for activated LoRA the start of its last
// invocation; kNever if there is none, because generated tokens cannot invoke it.
inline constexpr int kNever = std::numeric_limits<int>::max();
int acts_from(std::span<const AppliedAdapter> adapters, std::span<const int32_t> prompt);
// The same for one adapter with this invocation; empty: it always acts.
int acts_from(const std::vector<int32_t>& invocation, std::span<const int32_t> prompt);
// kInvalidArgument if a combination of adapters has no exact answer.
Status check_uses(std::span<const AppliedAdapter> adapters);
// Needs of the adapters in the pool, parts included, each content once.
std::vector<memory::AdapterNeed> needs_of(std::span<const AppliedAdapter> adapters);
// The cache key of an input's visual embeddings: its pixels, and the adapters that target the tower
// or the projector.
Digest visual_key(std::span<const AppliedAdapter> adapters, const Digest& input);

}  // namespace valora::serving
