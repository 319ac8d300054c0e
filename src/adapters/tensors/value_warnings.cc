#include "adapters/tensors/value_warnings.h"

#include <algorithm>

#include "adapters/tensors/tensor_names.h"
#include "adapters/tensors/tensor_values.h"
#include "base/text/strings.h"

namespace valora::adapters {
namespace {

bool is_read_and_zero(const TensorView& view) { return !view.bytes.empty() && all_zero(view); }

// Warns of the first such tensor in the file. PEFT initialises lora_A with random numbers; only the
// A of an embedding begins as zeros.
void warn_of_unwritten(const SafeTensors& file, std::vector<std::string>& warnings) {
  const std::string* first = nullptr;
  const uint8_t* where = nullptr;
  size_t count = 0;
  for (const auto& [tensor, view] : file.tensors()) {
    const auto name = parse_tensor_name(tensor);
    if (!name.ok() || name->role != TensorRole::kLoraA || !is_read_and_zero(view)) continue;
    ++count;
    if (first && where < view.bytes.data()) continue;
    first = &tensor;
    where = view.bytes.data();
  }
  if (count == 0) return;
  const std::string more =
      count == 1 ? " is all zeros" : " and " + std::to_string(count - 1) + " more are all zeros";
  warnings.push_back("tensor \"" + shortened(*first) + "\"" + more +
                     ", which no lora_A is after training: the file may be incomplete");
}

}  // namespace

std::string idle_products(const std::vector<LoraTarget>& targets) {
  if (targets.empty()) return {};
  const auto all = [&](auto&& holds) { return std::ranges::all_of(targets, holds); };
  if (all([](const LoraTarget& target) { return target.scale == 0; })) return "lora_alpha is 0";
  if (all([](const LoraTarget& target) { return is_read_and_zero(target.b); }))
    return "every lora_B is all zeros";
  if (all([](const LoraTarget& target) {
        return target.scale == 0 || is_read_and_zero(target.a) || is_read_and_zero(target.b);
      }))
    return "each of them has a factor that is all zeros";
  return {};
}

void warn_of_values(const SafeTensors& file, const std::string& idle, AdapterSpec& spec) {
  warn_of_unwritten(file, spec.warnings);
  if (idle.empty()) return;
  const bool has_more =
      !spec.heads.empty() || !spec.parts.empty() || !spec.shifts.empty() || !spec.gains.empty();
  spec.warnings.push_back("the low-rank products change nothing: " + idle +
                          (has_more ? "" : "; the adapter answers as the base model does"));
}

}  // namespace valora::adapters
