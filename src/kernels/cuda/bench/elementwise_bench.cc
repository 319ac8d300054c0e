#include "kernels/cuda/elementwise.h"

#include <string>

#include "kernels/cuda/bench/model.h"
#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/testing/values.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;

// One row of `elements` values per token and set, in a single allocation.
class Rows {
 public:
  Rows(int64_t tokens, int64_t elements, int sets)
      : set_bytes_(tokens * elements * 2), memory_(set_bytes_ * sets) {
    require(cudaMemset(memory_.data(), 0x3c, memory_.size()), "cudaMemset");
  }
  std::byte* set(int i) const { return memory_.data() + i * set_bytes_; }

 private:
  int64_t set_bytes_;
  DeviceMemory memory_;
};

void bench_tokens(const ModelSizes& m, int64_t tokens, const Figures& figures) {
  const auto run = [&](const char* name, int64_t elements, const auto& body) {
    const double bytes = 2.0 * tokens * elements;
    const int sets = rotations(static_cast<size_t>(bytes), 4096);
    const double seconds = body(sets);
    print_result(std::string(name) + " " + m.name + " tokens " + std::to_string(tokens), seconds,
                 bytes, 0, figures);
  };
  const DeviceValues weight(Random(1).values(m.hidden, kDtype), kDtype);
  run("add_rms_norm", 4 * m.hidden, [&](int sets) {
    const Rows x(tokens, m.hidden, sets), residual(tokens, m.hidden, sets),
        out(tokens, m.hidden, sets);
    return seconds_per_launch(
        [&](int i, Stream stream) {
          return add_rms_norm(kDtype, x.set(i), residual.set(i), weight.data(), 0, out.set(i),
                              tokens, m.hidden, 1e-6f, stream);
        },
        sets);
  });
  run("gate_mul", 3 * m.inter, [&](int sets) {
    const Rows x(tokens, 2 * m.inter, sets), out(tokens, m.inter, sets);
    return seconds_per_launch(
        [&](int i, Stream stream) {
          return gate_mul(Gate::kSilu, kDtype, x.set(i), 2 * m.inter, x.set(i) + 2 * m.inter,
                          2 * m.inter, out.set(i), tokens, m.inter, stream);
        },
        sets);
  });
  run("rotate_half", 2 * m.heads * m.dim + 2 * m.dim, [&](int sets) {
    const int64_t stride = int64_t{m.heads} * m.dim;
    const Rows x(tokens, stride, sets), cos(tokens, m.dim, sets), sin(tokens, m.dim, sets);
    return seconds_per_launch(
        [&](int i, Stream stream) {
          return rotate_half(
              kDtype, {x.set(i), stride, m.heads}, reinterpret_cast<const float*>(cos.set(i)),
              reinterpret_cast<const float*>(sin.set(i)), tokens, m.dim, m.dim, stream);
        },
        sets);
  });
}

}  // namespace

void bench_elementwise(const Figures& figures) {
  for (const ModelSizes& m : kModels)
    for (const int64_t tokens : {1, 32, 2048}) bench_tokens(m, tokens, figures);
}

}  // namespace valora::kernels::cuda
