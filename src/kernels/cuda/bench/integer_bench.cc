#include <string>
#include <vector>

#include "kernels/cuda/bench/model.h"
#include "kernels/cuda/bench/timing.h"
#include "kernels/cuda/integer_product.h"
#include "kernels/cuda/testing/device_memory.h"

namespace valora::kernels::cuda {
namespace {

constexpr Dtype kDtype = Dtype::kBf16;
constexpr int kMostSets = 600;

struct Shape {
  const char* name;
  int in;
  std::vector<int> outs;
};

// Symmetric weights with scales in bf16. adapters: the sums are written as well.
void bench_shape(const ModelSizes& model, const Shape& s, int bits, int tokens, bool adapters,
                 const Figures& figures) {
  std::vector<IntegerMatrix> matrices;
  int64_t bytes = 0, outs = 0;
  for (const int out : s.outs) {
    matrices.push_back(integer_matrix(out, s.in, bits, bits == 4 ? 32 : 128, Dtype::kBf16, false));
    bytes += matrices.back().bytes, outs += out;
  }
  const int64_t x_bytes = 2 * int64_t{tokens} * s.in, y_elements = int64_t{tokens} * outs;
  const int64_t y_bytes = y_elements * (adapters ? 6 : 2);
  const int sets = rotations(static_cast<size_t>(bytes + x_bytes + y_bytes), kMostSets);
  const DeviceMemory weights(bytes * sets), x(x_bytes * sets), y(y_bytes * sets);
  require(cudaMemset(weights.data(), 0x3c, weights.size()), "cudaMemset");
  require(cudaMemset(x.data(), 0x3c, x.size()), "cudaMemset");
  const auto launch = [&](int set, Stream stream) {
    IntegerCall call;
    call.dtype = kDtype, call.x = x.data() + x_bytes * set, call.x_stride = s.in;
    call.tokens = tokens, call.in = s.in, call.slice_count = static_cast<int>(s.outs.size());
    std::byte* data = weights.data() + bytes * set;
    std::byte* to = y.data() + y_bytes * set;
    for (size_t i = 0; i < s.outs.size(); ++i) {
      IntegerSlice& slice = call.slices[i];
      slice.w = matrices[i], slice.w.data = data, slice.y = to, slice.y_stride = s.outs[i];
      data += matrices[i].bytes, to += 2 * int64_t{tokens} * s.outs[i];
    }
    for (size_t i = 0; i < s.outs.size() && adapters; ++i) {
      call.slices[i].sums = reinterpret_cast<float*>(to);
      to += 4 * int64_t{tokens} * s.outs[i];
    }
    return integer_product(call, stream);
  };
  const double flops = tokens > 64 ? 2.0 * tokens * s.in * static_cast<double>(outs) : 0;
  print_result(std::string("integers ") + model.name + " " + s.name + " bits " +
                   std::to_string(bits) + " tokens " + std::to_string(tokens) +
                   (adapters ? " with sums" : ""),
               seconds_per_launch(launch, sets), static_cast<double>(bytes + x_bytes + y_bytes),
               flops, figures);
}

}  // namespace

void bench_integers(const Figures& figures) {
  for (const ModelSizes& m : kModels) {
    const int kv = m.kv_heads * m.dim;
    const Shape shapes[] = {{"qkv", m.hidden, {m.heads * m.dim, kv, kv}},
                            {"gate_up", m.hidden, {m.inter, m.inter}},
                            {"down", m.inter, {m.hidden}}};
    for (const Shape& s : shapes)
      for (const int bits : {4, 8}) {
        for (const int tokens : {1, 8, 16, 32, 64, 512, 2048})
          bench_shape(m, s, bits, tokens, false, figures);
        for (const int tokens : {8, 2048}) bench_shape(m, s, bits, tokens, true, figures);
      }
  }
}

}  // namespace valora::kernels::cuda
