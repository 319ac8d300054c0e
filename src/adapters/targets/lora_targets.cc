#include "adapters/targets/lora_targets.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "adapters/tensors/stored_experts.h"
#include "adapters/tensors/tensor_values.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr char kWeight[] = ".weight";

// Two prefixes: replacing the first by the second turns the file's name into the table's.
using Spelling = std::pair<std::string, std::string>;

Spelling spelling_of(const std::string& name, const std::string& canonical) {
  size_t common = 0;
  while (common < std::min(name.size(), canonical.size()) &&
         name[name.size() - 1 - common] == canonical[canonical.size() - 1 - common])
    ++common;
  return {name.substr(0, name.size() - common), canonical.substr(0, canonical.size() - common)};
}

Status check_shape(const char* half, const Module& module, const TensorView& view, int64_t rows,
                   int64_t columns) {
  const std::vector<int64_t> expected{rows, columns};
  if (view.shape == expected) return {};
  return unprocessable(std::string(half) + " of " + module.name + " has shape " +
                       shape_text(view.shape) + "; its configured rank and the module require " +
                       shape_text(expected));
}

class Resolver {
 public:
  Resolver(const TargetRules& rules, const AdapterContents& contents, const ModuleTable& modules,
           const AdapterLimits& limits)
      : rules_(rules), contents_(contents), modules_(modules), limits_(limits) {}

  Result<std::vector<LoraTarget>> resolve() {
    std::vector<LoraTarget> targets;
    const auto is_expert = [](const Module& m) { return m.mixture == Module::Mixture::kExpert; };
    if (!rules_.parameters.empty() && std::ranges::none_of(modules_.modules(), is_expert))
      return unprocessable("target_parameters = [\"" + shortened(*rules_.parameters.begin()) +
                               "\", …] is supported for the experts of mixtures alone, which this "
                               "model does not have",
                           "target_parameters");
    for (const auto& [index, halves] : contents_.modules) {
      spellings_.insert(spelling_of(halves.name, module(index).name));
      VALORA_TRY(name, halves.stored_together ? configured_parameter(index, halves.name)
                                              : configured_name(index, halves.name));
      VALORA_TRY(target, make_target(index, name, halves));
      targets.push_back(std::move(target));
    }
    return targets;
  }

  // As in PEFT, targets without tensors stay as in the base model. This is intended if no linear of
  // a kind has tensors: the configuration reaches that kind in this release or model, but did not
  // where the adapter was trained. If a kind has tensors in some layers only, the others were lost.
  Status check_missing(std::vector<std::string>& warnings) {
    std::set<int> kinds;
    for (const auto& [index, halves] : contents_.modules) kinds.insert(modules_.first_like(index));
    VALORA_TRY(targeted, modules_.known_targets().of(key(), [&] { return all_targeted(); }));
    std::vector<int> lost, left;
    for (const int i : *targeted)
      if (!contents_.modules.contains(i))
        (kinds.contains(modules_.first_like(i)) ? lost : left).push_back(i);
    if (!lost.empty())
      return unprocessable("the file has no tensors for " + module(lost[0]).name +
                           and_more(lost.size()) +
                           ", which the configuration targets, but has them in other layers: a "
                           "part of it is missing");
    // "all-linear" targets linears only, neither the embedding nor the output layer.
    if (rules_.all_linear)
      std::erase_if(left, [&](int i) { return module(i).kind != ModuleKind::kLinear; });
    for (const int i : contents_.unread)
      warnings.push_back("the adapter of " + module(i).name +
                         " has no effect, as in PEFT: the model reads that weight past its module");
    if (!left.empty())
      warnings.push_back("the configuration also targets " + module(left[0]).name +
                         and_more(left.size()) +
                         " without tensors in the file; left as in the base model");
    return {};
  }

 private:
  const Module& module(int index) const { return modules_.modules()[index]; }

  static std::string and_more(size_t count) {
    return count == 1 ? "" : " and " + std::to_string(count - 1) + " more modules";
  }

  // A name under which the configuration targets a module, preferably the file's.
  Result<std::string> configured_name(int index, const std::string& file_name) {
    std::vector<std::string> names = modules_.names(index);
    std::erase(names, file_name);
    names.insert(names.begin(), file_name);
    for (std::string& name : names) {
      VALORA_TRY(hit, rules_.targets_name(name, budget_));
      if (hit) return std::move(name);
    }
    // PEFT also adapts a linear by the name of its weight, which its patterns then match.
    for (const std::string& name : names)
      if (rules_.targets_parameter(name + kWeight)) return name + kWeight;
    return unprocessable("the file has tensors for " + file_name +
                         ", which the configuration does not target");
  }

  // The parameter of an expert, under a name under which target_parameters targets it.
  Result<std::string> configured_parameter(int index, const std::string& file_name) const {
    std::vector<std::string> names = modules_.names(index);
    names.insert(names.begin(), file_name);
    for (const std::string& name : names) {
      std::string parameter = stored_parameter_of(module(index), name);
      if (rules_.targets_parameter(parameter)) return parameter;
    }
    return unprocessable("the file has tensors for " +
                         stored_parameter_of(module(index), file_name) +
                         ", which target_parameters does not name");
  }

  // Of what all_targeted() depends on.
  Digest key() const {
    DigestBuilder key;
    key.add(rules_.selection);
    for (const auto& [from, to] : spellings_) key.add(from).add(to);
    return key.finish();
  }

  // The modules that the configuration targets, with or without tensors in the file.
  Result<std::vector<int>> all_targeted() {
    std::vector<int> targeted;
    for (int i = 0; i < static_cast<int>(modules_.modules().size()); ++i) {
      if (module(i).kind == ModuleKind::kUnread) continue;
      VALORA_TRY(hit, is_targeted(i));
      if (hit) targeted.push_back(i);
    }
    return targeted;
  }

  // Uses the names in the file's spelling. If the module has none, all its names must match: it
  // probably had another name, or did not exist, where the adapter was trained.
  Result<bool> is_targeted(int index) {
    const std::vector<std::string> names = modules_.names(index);
    bool in_spelling = false, all = true;
    if (rules_.targets_parameter(stored_parameter_of(module(index), names[0])) ||
        rules_.targets_parameter(names[0] + kWeight))
      return true;
    for (const std::string& name : names) {
      const bool likely = spellings_.contains(spelling_of(name, names[0]));
      if (in_spelling && !likely) continue;
      VALORA_TRY(hit, rules_.targets_name(name, budget_));
      if (likely && hit) return true;
      in_spelling = in_spelling || likely;
      all = all && hit;
    }
    return !in_spelling && all;
  }

  Result<LoraTarget> make_target(int index, const std::string& name, const LoraHalves& halves) {
    VALORA_TRY(rank, rules_.rank_of(name, budget_));
    if (rank < 1)
      return unprocessable("rank " + std::to_string(rank) + " of " + module(index).name +
                           " is below 1");
    if (rank > limits_.max_rank)
      return unprocessable("rank " + std::to_string(rank) + " is above --max-lora-rank " +
                           std::to_string(limits_.max_rank) + " (" + module(index).name + ")");
    VALORA_TRY(a_blocks, blocks_of(index, rules_.block_diagonal, /*of_a=*/true));
    VALORA_TRY(b_blocks, blocks_of(index, rules_.block_diagonal, /*of_a=*/false));
    int64_t in = module(index).in, out = module(index).out;
    // An adapter may have its own vocabulary size (adapters/tensors/whole_values.cc).
    if (module(index).kind == ModuleKind::kEmbedding && halves.a->shape.size() == 2)
      in = halves.a->shape[1];
    if (module(index).kind == ModuleKind::kHead && halves.b->shape.size() == 2 && b_blocks == 1)
      out = halves.b->shape[0];
    if (in % a_blocks != 0 || rank % a_blocks != 0 || out % b_blocks != 0 || rank % b_blocks != 0)
      return unprocessable("use_bdlora has " + std::to_string(std::max(a_blocks, b_blocks)) +
                               " blocks, which do not divide the rank and the size of " +
                               module(index).name,
                           "use_bdlora");
    VALORA_CHECK(check_shape("lora_A", module(index), *halves.a, rank, in / a_blocks));
    VALORA_CHECK(check_shape("lora_B", module(index), *halves.b, out, rank / b_blocks));
    VALORA_TRY(scale, rules_.scale_of(name, rank, budget_));
    if (!std::isfinite(static_cast<float>(scale)))
      return unprocessable("the scale of " + module(index).name + " is not finite");
    LoraTarget target{index, rank, static_cast<float>(scale), *halves.a, *halves.b, halves.owner};
    if (a_blocks > 1) make_dense(a_blocks, target.a, target.dense);
    if (b_blocks > 1) make_dense(b_blocks, target.b, target.dense);
    return target;
  }

  Error not_one_block_diagonal(int index, const char* which) const {
    return unprocessable(
        std::string("use_bdlora names ") + which + " of A and B of " + module(index).name,
        "use_bdlora");
  }

  // The number of diagonal blocks in a module's A or B; 1: not block-diagonal.
  Result<int64_t> blocks_of(int index, const std::optional<BlockDiagonal>& rule, bool of_a) const {
    if (!rule || module(index).kind == ModuleKind::kEmbedding) return int64_t{1};
    const std::string& name = module(index).name;
    const std::string own = name.substr(name.rfind('.') + 1);
    const auto matches = [&](const std::vector<std::string>& patterns) {
      return std::ranges::any_of(
          patterns, [&](const std::string& pattern) { return own.find(pattern) != own.npos; });
    };
    const bool a = matches(rule->a), b = matches(rule->b);
    if (a && b) return not_one_block_diagonal(index, "both");
    if (!a && !b && rule->strict) return not_one_block_diagonal(index, "neither");
    return (of_a ? a : b) ? rule->blocks : int64_t{1};
  }

  // Converts [n, k / blocks], with the blocks stacked vertically, to [n, k], with the blocks on the
  // diagonal.
  static void make_dense(int64_t blocks, TensorView& view,
                         std::shared_ptr<const std::vector<uint8_t>>& dense) {
    const int64_t rows = view.shape[0], width = view.shape[1];
    const size_t stride = static_cast<size_t>(width) * dtype_size(view.dtype);
    view.shape[1] = width * blocks;
    if (view.bytes.empty()) return;  // only headers were read
    auto values = std::make_shared<std::vector<uint8_t>>(byte_size(view));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t block = row / (rows / blocks);
      std::memcpy(values->data() + static_cast<size_t>(row * blocks + block) * stride,
                  view.bytes.data() + static_cast<size_t>(row) * stride, stride);
    }
    view.bytes = *values;
    dense = std::move(values);
  }

  const TargetRules& rules_;
  const AdapterContents& contents_;
  const ModuleTable& modules_;
  const AdapterLimits& limits_;
  RegexBudget budget_;
  std::set<Spelling> spellings_;
};

}  // namespace

Result<std::vector<LoraTarget>> resolve_targets(const TargetRules& rules,
                                                const AdapterContents& contents,
                                                const ModuleTable& modules,
                                                const AdapterLimits& limits,
                                                std::vector<std::string>& warnings) {
  Resolver resolver(rules, contents, modules, limits);
  VALORA_TRY(targets, resolver.resolve());
  VALORA_CHECK(resolver.check_missing(warnings));
  return targets;
}

}  // namespace valora::adapters
