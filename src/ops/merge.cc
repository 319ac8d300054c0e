#include "ops/merge.h"

#include <vector>

#include "kernels/cpu/merge/merge.h"
#include "ops/cpu_dispatch.h"
#include "ops/parallel.h"
#include "ops/weight_panels.h"

namespace valora::ops {
namespace {

void check(const Merge& m, const Merge& first) {
  const Weight &w = *m.weight, &to = *m.merged, &a = m.adapter->a, &b = m.adapter->b;
  TORCH_CHECK(to.out() == w.out() && to.in() == w.in() && to.packed() == w.packed() &&
                  to.dtype() == w.dtype() && to.data().sizes() == w.data().sizes(),
              "merge: a weight of [", w.out(), ", ", w.in(), "] into one of [", to.out(), ", ",
              to.in(), "]");
  TORCH_CHECK(a.in() == w.in() && b.out() == w.out() && a.out() == b.in(), "merge: an adapter of [",
              b.out(), ", ", b.in(), "] x [", a.out(), ", ", a.in(), "] into a weight of [",
              w.out(), ", ", w.in(), "]");
  for (const Weight* other : {&w, &a, &b})
    TORCH_CHECK(
        other->packed() == first.weight->packed() && other->dtype() == first.weight->dtype(),
        "merge: weights in different forms");
}

void merge_aten(const Merge& m) {
  const auto wide = [](const Weight& w) { return w.data().to(at::kFloat); };
  const at::Tensor sum =
      at::addmm(wide(*m.weight), wide(m.adapter->b), wide(m.adapter->a), 1, m.coefficient);
  at::Tensor merged = m.merged->data();
  merged.copy_(sum);
}

}  // namespace

void merge(std::span<const Merge> merges) {
  if (merges.empty()) return;
  for (const Merge& m : merges) check(m, merges[0]);
  if (!merges[0].weight->packed()) {
    for (const Merge& m : merges) merge_aten(m);
    return;
  }
  dispatch_cpu(merges[0].weight->data(), [&](auto t) {
    using T = decltype(t);
    std::vector<kernels::Merge<T>> list;
    list.reserve(merges.size());
    for (const Merge& m : merges)
      list.push_back({panels_of<T>(*m.weight), raw<T>(m.merged->data()), panels_of<T>(m.adapter->a),
                      panels_of<T>(m.adapter->b), m.coefficient});
    kernels::merge<T>(list, torch_parallel());
  });
}

}  // namespace valora::ops
