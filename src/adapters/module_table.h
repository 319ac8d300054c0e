// The linear modules of a model as adapters name them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace valora::adapters {

struct Module {
  std::string name;  // canonical: the newest Hugging Face name, e.g.
                     // "model.language_model.layers.3.mlp.up_proj"
  int64_t in = 0;
  int64_t out = 0;
  bool servable = true;  // false: known, but no adapter on it can be served
  int64_t layer = -1;    // its index where it lies in a repeated layer
  bool visual =
      false;  // of the vision tower or the projector: changes visual embeddings, not the decoder
};

// Checkpoints and adapters of different transformers versions prefix the same module differently;
// a name that starts with `alias` means `canonical` + rest. Longest alias first.
struct PrefixAlias {
  std::string alias;
  std::string canonical;
};

class ModuleTable {
 public:
  ModuleTable() = default;
  ModuleTable(std::vector<Module> modules, std::vector<PrefixAlias> aliases, int64_t hidden_size);

  const std::vector<Module>& modules() const { return modules_; }
  int64_t hidden_size() const { return hidden_size_; }  // width that task heads read
  // Index of a module by its canonical name or an aliased one; the canonical name wins.
  std::optional<int> find(std::string_view name) const;
  // All names one module may have: canonical first, then its aliases. Patterns of an adapter's
  // config are tried on each, since a config is written against the names of its own transformers
  // version.
  std::vector<std::string> names(int module) const;

 private:
  std::vector<Module> modules_;
  std::unordered_map<std::string, int> by_name_;
  std::vector<PrefixAlias> aliases_;
  int64_t hidden_size_ = 0;
};

}  // namespace valora::adapters
