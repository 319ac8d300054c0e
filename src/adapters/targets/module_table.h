// The linear modules of a model under the names that adapters use.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/partition.h"
#include "adapters/targets/known_targets.h"

namespace valora::adapters {

// What a module computes, which determines how adapters change it.
enum class ModuleKind : uint8_t {
  kLinear,
  kEmbedding,  // token embedding; in: the vocabulary
  kHead,       // the output layer; out: the vocabulary
  // A linear whose weight the reference reads directly instead of calling the module: PEFT adapts
  // it without any effect on answers.
  kUnread,
  kOther  // cannot be adapted
};
inline constexpr size_t kModuleKinds = 5;
const char* module_kind_name(ModuleKind kind);  // "linear", "embedding", "output layer", …

struct Module {
  // Canonical: the newest Hugging Face name, e.g. "model.language_model.layers.3.mlp.up_proj".
  std::string name;
  int64_t in = 0;
  int64_t out = 0;
  int64_t layer = -1;  // index of the repeated layer it belongs to; -1: none
  // Part of the vision tower or the projector: affects visual embeddings, not the decoder.
  bool visual = false;
  ModuleKind kind = ModuleKind::kLinear;
  Partition partition = {};  // among ranks
  // What a linear of the decoder's layers is to a mixture of experts, if it is part of one.
  enum class Mixture : uint8_t { kNone, kExpert, kRouter /* chooses or weighs experts */ };
  Mixture mixture = Mixture::kNone;

  // True for a linear of the decoder's layers, whose weights --quantization stores as integers.
  bool in_decoder() const {
    return kind == ModuleKind::kLinear && !visual && layer >= 0 && mixture != Mixture::kRouter;
  }
};

// The part of a module that rank `rank` of `ranks` holds.
inline MatrixSlice slice_of(const Module& module, int rank, int ranks) {
  return slice_of(module.partition, module.out, module.in, rank, ranks);
}

// Versions of transformers prefix the same module differently. A name that starts with `alias`
// means `canonical` + rest. Longest alias first.
struct PrefixAlias {
  std::string alias;
  std::string canonical;
};

// One per model: a mixture of experts has tens of thousands of modules, so adapters refer to it and
// have none of their own. Immutable.
class ModuleTable {
 public:
  ModuleTable() : ModuleTable({}, {}, 0) {}
  ModuleTable(std::vector<Module> modules, std::vector<PrefixAlias> aliases, int64_t hidden_size);

  const std::vector<Module>& modules() const { return modules_; }
  int64_t hidden_size() const { return hidden_size_; }  // the width of task heads' input
  // The index of a module by its canonical name or an alias. The canonical name takes precedence.
  std::optional<int> find(std::string_view name) const;
  // The index of the first module of a kind; -1: none.
  int first_of(ModuleKind kind) const { return first_of_[static_cast<size_t>(kind)]; }
  // The first module whose name differs from this one's in the index of its layer alone.
  int first_like(int module) const { return first_like_[static_cast<size_t>(module)]; }
  // What configurations of adapters target. Copies of the table share it.
  KnownTargets& known_targets() const { return *known_targets_; }
  // All names of one module: canonical first, then its aliases. An adapter's patterns are tried on
  // each, because its configuration uses the names of the transformers version it was written with.
  std::vector<std::string> names(int module) const;

 private:
  std::vector<Module> modules_;
  std::unordered_map<std::string, int> by_name_;
  std::array<int, kModuleKinds> first_of_;
  std::vector<int> first_like_;  // by module
  std::vector<PrefixAlias> aliases_;
  int64_t hidden_size_ = 0;
  std::shared_ptr<KnownTargets> known_targets_ = std::make_shared<KnownTargets>();
};

}  // namespace valora::adapters
