// The linear modules of a model as adapters name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "adapters/partition.h"

namespace valora::adapters {

// What a module computes, which decides how adapters change it.
enum class ModuleKind : uint8_t {
  kLinear,
  kEmbedding,  // of the tokens; in: the vocabulary
  kHead,       // the output layer; out: the vocabulary
  // A linear that the reference reads past its module: PEFT adapts it, and the answer is the
  // base's.
  kUnread,
  kOther  // adapters on it cannot be served
};
const char* module_kind_name(ModuleKind kind);  // "linear", "embedding", "output layer", …

struct Module {
  // Canonical: the newest Hugging Face name, e.g. "model.language_model.layers.3.mlp.up_proj".
  std::string name;
  int64_t in = 0;
  int64_t out = 0;
  int64_t layer = -1;  // its index in a repeated layer; -1 outside
  // Part of the vision tower or the projector: affects visual embeddings, not the decoder.
  bool visual = false;
  ModuleKind kind = ModuleKind::kLinear;
  Partition partition = {};  // over ranks

  // A linear of the decoder's layers, whose weights --quantization stores as integers.
  bool in_decoder() const { return kind == ModuleKind::kLinear && !visual && layer >= 0; }
};

// The part of a module that one of `ranks` ranks has.
inline MatrixSlice slice_of(const Module& module, int rank, int ranks) {
  return slice_of(module.partition, module.out, module.in, rank, ranks);
}

// Different transformers versions prefix the same module differently. A name that starts with
// `alias` means `canonical` + rest. Longest alias first.
struct PrefixAlias {
  std::string alias;
  std::string canonical;
};

class ModuleTable {
 public:
  ModuleTable() = default;
  ModuleTable(std::vector<Module> modules, std::vector<PrefixAlias> aliases, int64_t hidden_size);

  const std::vector<Module>& modules() const { return modules_; }
  int64_t hidden_size() const { return hidden_size_; }  // the width of task heads' input
  // The index of a module by its canonical name or an alias. The canonical name takes precedence.
  std::optional<int> find(std::string_view name) const;
  // The index of the first module of a kind; -1: there is none.
  int first_of(ModuleKind kind) const;
  // All names of one module: canonical first, then its aliases. Patterns of an adapter's
  // configuration are tried on each, because a configuration uses the names of its own transformers
  // version.
  std::vector<std::string> names(int module) const;

 private:
  std::vector<Module> modules_;
  std::unordered_map<std::string, int> by_name_;
  std::vector<PrefixAlias> aliases_;
  int64_t hidden_size_ = 0;
};

}  // namespace valora::adapters
