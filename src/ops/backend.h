// Who computes on CPUs: valora's own kernels, or ATen, which the tests compare them with.
#pragma once

namespace valora::ops {

enum class Backend { kNative, kReference };

Backend backend();
// Weights and caches made before keep their form: to be called before a model is loaded.
void set_backend(Backend backend);

}  // namespace valora::ops
