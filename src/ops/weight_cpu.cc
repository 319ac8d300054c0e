#include "ops/weight_cpu.h"

#include "ops/huge_memory.h"
#include "ops/parallel.h"

namespace valora::ops {

void pack_cpu(const at::Tensor& w, const at::Tensor& panels) {
  with_cpu_type(w, [&](auto t) {
    using T = decltype(t);
    kernels::pack_panels<T>(raw<T>(w), w.size(0), w.size(1), raw<T>(panels), torch_parallel());
  });
}

at::Tensor pack_cpu(const at::Tensor& w) {
  const int64_t elements = with_cpu_type(
      w, [&](auto t) { return kernels::packed_elements<decltype(t)>(w.size(0), w.size(1)); });
  at::Tensor panels = huge_zeros(elements, w.scalar_type());
  pack_cpu(w, panels);
  return panels;
}

at::Tensor unpack_cpu(const Weight& w) {
  at::Tensor values = at::empty({w.out(), w.in()}, w.data().options());
  with_cpu_type(values, [&](auto t) {
    using T = decltype(t);
    kernels::unpack_panels<T>(panels_of<T>(w), raw<T>(values));
  });
  return values;
}

}  // namespace valora::ops
