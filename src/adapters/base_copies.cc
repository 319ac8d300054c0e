#include "adapters/base_copies.h"

#include "adapters/tensor_names.h"
#include "adapters/tensor_values.h"
#include "base/strings.h"
#include "base/tensor_pieces.h"

namespace valora::adapters {
namespace {

std::string base_name(const TensorName& name) {
  return name.module + (name.role == TensorRole::kWeight ? ".weight" : ".bias");
}

Error cannot_serve(const TensorName& name, const std::string& why) {
  const bool is_weight = name.role == TensorRole::kWeight;
  return unprocessable("the adapter adapts " + shortened(name.module) +
                       (is_weight ? " (its whole weight" : " (its bias") + why +
                       "), which this version cannot serve");
}

Status check_values(const SafeTensors& file, const std::string& tensor, const TensorName& name,
                    const BaseWeights& base) {
  return visit_pieces(file, tensor, [&](size_t first, const TensorView& piece) -> Status {
    VALORA_TRY(equal, base.equal(base_name(name), first, piece));
    if (equal) return {};
    return cannot_serve(name, ": it differs from the base model's");
  });
}

}  // namespace

bool BaseCopies::are(const std::string& tensor, const ModuleTable& modules) const {
  const auto name = parse_tensor_name(tensor);
  if (!name.ok() || (name->role != TensorRole::kWeight && name->role != TensorRole::kBias))
    return false;
  if (modules.find(name->module)) return true;
  if (name->module.find('.') == std::string::npos) return false;  // a head
  return pass_over || (base && base->shape_of(base_name(*name)));
}

Status BaseCopies::check(const SafeTensors& file, const AdapterContents& contents) const {
  if (pass_over) return {};
  for (const auto& [tensor, name] : contents.base_copies) {
    const auto shape = base ? base->shape_of(base_name(name)) : std::nullopt;
    if (!shape) return cannot_serve(name, "");
    const TensorView& copy = *file.find(tensor);
    if (copy.shape != *shape)
      return cannot_serve(name, " of shape " + shape_text(copy.shape) + ", not the base model's " +
                                    shape_text(*shape));
    VALORA_CHECK(check_values(file, tensor, name, *base));
  }
  return {};
}

}  // namespace valora::adapters
