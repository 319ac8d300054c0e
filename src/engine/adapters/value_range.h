// Refuses adapters whose values are finite in the file but not in the data type that they are
// served in.
#pragma once

#include <ATen/ATen.h>

#include "adapters/adapter_spec.h"
#include "base/result.h"

namespace valora {

// True if a value of the tensor rounds to an infinity in `dtype`.
bool overflows(const TensorView& tensor, at::ScalarType dtype);

// kUnprocessable, naming the module: a factor overflows in `dtype`. An infinite factor makes every
// output of its linear NaN or infinite, whatever the input, so no adapter is refused that could be
// served. Large values that are still finite may pass: whether their products overflow depends on
// the request.
Status check_range(const adapters::AdapterSpec& spec, const adapters::ModuleTable& modules,
                   at::ScalarType dtype);

}  // namespace valora
