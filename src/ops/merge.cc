#include "ops/merge.h"

#include "ops/dispatch.h"
#include "ops/merge_targets.h"

namespace valora::ops {
namespace {

void check(const Merge& m, const Merge& first) {
  const Weight &w = *m.weight, &to = *m.merged, &a = m.adapter->a, &b = m.adapter->b;
  TORCH_CHECK(to.out() == w.out() && to.in() == w.in() && to.form() == w.form() &&
                  to.dtype() == w.dtype() && to.data().sizes() == w.data().sizes(),
              "merge: a weight of [", w.out(), ", ", w.in(), "] into one of [", to.out(), ", ",
              to.in(), "]");
  TORCH_CHECK(a.in() == w.in() && b.out() == w.out() && a.out() == b.in(), "merge: an adapter of [",
              b.out(), ", ", b.in(), "] x [", a.out(), ", ", a.in(), "] into a weight of [",
              w.out(), ", ", w.in(), "]");
  for (const Weight* other : {&w, &a, &b})
    TORCH_CHECK(other->form() == first.weight->form() && other->dtype() == first.weight->dtype(),
                "merge: weights in different forms");
}

}  // namespace

void merge(std::span<const Merge> merges) {
  if (merges.empty()) return;
  for (const Merge& m : merges) check(m, merges[0]);
  switch (target_of(*merges[0].weight)) {
    case Target::kCpu: return merge_cpu(merges);
    case Target::kAten: break;
  }
  merge_aten(merges);
}

}  // namespace valora::ops
