// A packed weight as the kernels see it.
#pragma once

#include "kernels/cpu/product/panels.h"
#include "ops/cpu_dispatch.h"
#include "ops/linear.h"

namespace valora::ops {

template <typename T>
kernels::Panels<T> panels_of(const Weight& w) {
  return {raw<T>(w.data()), w.out(), w.in(), nullptr, 0};
}

}  // namespace valora::ops
