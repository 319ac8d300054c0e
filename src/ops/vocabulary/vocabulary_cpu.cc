#include "kernels/cpu/linear/project.h"
#include "ops/device/cpu_types.h"
#include "ops/device/parallel.h"
#include "ops/vocabulary/vocabulary_targets.h"

namespace valora::ops {

void matrix_product_cpu(const at::Tensor& x, const PlacedMatrix& w, const at::Tensor& y) {
  with_cpu_type(x, [&](auto t) {
    using T = decltype(t);
    kernels::Slice<T> slice{.w = kernels::panels_of_factor<T>(w.factor(), w.rows(), w.columns()),
                            .y_float = y.mutable_data_ptr<float>(),
                            .ldy = w.rows()};
    kernels::project<T>(raw<T>(x), x.size(0), x.size(1), {&slice, 1}, {}, std::nullopt,
                        torch_parallel());
  });
}

}  // namespace valora::ops
