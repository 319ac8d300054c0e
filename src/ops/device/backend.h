// The backend on CPUs: valora's own kernels, or ATen as the reference for tests.
#pragma once

namespace valora::ops {

enum class Backend { kNative, kReference };

Backend backend();
// Call before loading a model: existing weights and caches keep their layout.
void set_backend(Backend backend);

}  // namespace valora::ops
