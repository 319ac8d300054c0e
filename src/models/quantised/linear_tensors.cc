#include "models/quantised/linear_tensors.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::models {

at::Tensor LinearTensors::take(const std::string& part, std::initializer_list<DType> dtypes,
                               std::initializer_list<std::vector<int64_t>> shapes) {
  const TensorView* view = find(part);
  if (!view) fail(part, "is missing, but the quantised weights of this linear need it");
  if (std::ranges::find(dtypes, view->dtype) == dtypes.end()) {
    std::vector<std::string> names;
    for (const DType dtype : dtypes) names.emplace_back(dtype_name(dtype));
    fail(part, fmt::format("has dtype {}, but the quantisation requires {}",
                           dtype_name(view->dtype), fmt::join(names, " or ")));
  }
  if (std::ranges::find(shapes, view->shape) == shapes.end()) {
    std::vector<std::string> texts;
    for (const auto& shape : shapes) texts.push_back(fmt::format("[{}]", fmt::join(shape, ", ")));
    fail(part, fmt::format("has shape [{}], but the quantisation requires {}",
                           fmt::join(view->shape, ", "), fmt::join(texts, " or ")));
  }
  at::Tensor tensor = read(part);
  return reads() ? tensor : at::Tensor();
}

at::Tensor LinearTensors::take_scales(const std::string& part,
                                      std::initializer_list<std::vector<int64_t>> shapes) {
  const at::Tensor stored = take(part, {DType::kF32, DType::kF16, DType::kBF16}, shapes);
  if (!stored.defined()) return stored;
  at::Tensor scales = stored.to(at::kFloat).contiguous();
  if (!at::isfinite(scales).all().item<bool>()) fail(part, "has values that are not finite");
  return scales;
}

}  // namespace valora::models
