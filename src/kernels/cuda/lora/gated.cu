// The expand of gate and up with the activation. Pairs of warps compute the same outputs of the two
// linears; the values of up pass through shared memory.
#include "kernels/cuda/device/gate.cuh"
#include "kernels/cuda/device/shared.cuh"
#include "kernels/cuda/lora/expand.cuh"

namespace valora::kernels::cuda {
namespace {

constexpr int kGate = 0, kUp = 1;  // slices

// Outputs [out, ..) of a slice's token, rounded as an expand and a later load would have them.
template <typename T>
__device__ void finished_row(const LoraArguments<T>& a, int slice, int64_t token, int out,
                             bool touched, float (&values)[8]) {
  const int count = a.out[slice] - out;
  if (!touched)
    return load_row(a.y[slice] + token * a.y_stride[slice] + out, count, a.y_vectors[slice],
                    values);
  add_base(a, slice, token, out, values);
#pragma unroll
  for (float& v : values) v = to_float(from_float<T>(v));
}

// kPairs: of warps. blockIdx: tile, outputs.
template <typename T, int kBands, int kGroups, int kPairs>
__global__ void __launch_bounds__(2 * kPairs * kWarpSize)
    gated_kernel(LoraArguments<T> a, LoraGate gate, bool out_vectors) {
  wait_for_earlier_launch();
  VALORA_SHARED(uint4, ups, [kBands * 2 * kGroups][kPairs][kWarpSize]);
  const LoraExpandTile tile = a.tables.expand_tiles[blockIdx.x];
  if (tile.tokens == 0) return;
  const int warp = threadIdx.x / kWarpSize, lane = threadIdx.x % kWarpSize;
  const int slice = warp / kPairs, pair = warp % kPairs, outs = a.out[kGate];
  const int g = lane / 4, q = lane % 4;
  const int first_out = (blockIdx.y * kPairs + pair) * kGroups * kGroupOuts;
  ExpandSums<kBands, kGroups> sums = {};
  const bool touched = first_out < outs && add_segments(a, tile, slice, first_out, sums);
  // Calls body(token, out, values, ups) for each row of 8 outputs that this lane has.
  const auto each_row = [&](const auto& body) {
#pragma unroll
    for (int b = 0; b < kBands; ++b)
#pragma unroll
      for (int r = 0; r < 2; ++r)
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          const int row = b * 16 + r * 8 + g, out = first_out + group * kGroupOuts + q * 8;
          if (row >= tile.tokens || out >= outs) continue;
          const int64_t token = tile.token_begin + row;
          float values[8];
          sums.get(b, r, group, values);
          finished_row(a, slice, token, out, touched, values);
          body(token, out, values,
               reinterpret_cast<T*>(&ups[(b * 2 + r) * kGroups + group][pair][lane]));
        }
  };
  if (slice == kUp)
    each_row([&](int64_t, int, const float (&values)[8], T* up) { store<T, 8>(up, values); });
  __syncthreads();
  if (slice != kGate) return;
  each_row([&](int64_t token, int out, float (&values)[8], const T* up) {
    float factors[8];
    load<T, 8>(up, factors);
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = activated(gate.activation, values[i]) * factors[i];
    store_row(static_cast<T*>(gate.out) + token * outs + out, outs - out, out_vectors, values);
  });
}

template <typename T, int kBands, int kGroups, int kPairs>
Status gated_with(const LoraCall& call, const LoraGate& gate, const LoraTiles& tiles,
                  const void* workspace, Stream stream) {
  const int32_t outs = call.slices[kGate].out;
  const dim3 grid(call.sizes.all_tiles, ceil_div(outs, kPairs * kGroups * kGroupOuts));
  return launch(gated_kernel<T, kBands, kGroups, kPairs>, grid, 2 * kPairs * kWarpSize, 0, stream,
                lora_arguments<T>(call, tiles, const_cast<void*>(workspace)), gate,
                whole_vectors<T>({outs}) && aligned16({gate.out}));
}

// Uses the nearest compiled tile. Its width is that of both linears together.
template <typename T, int kBands>
Status gated_in(const LoraCall& call, const LoraGate& gate, const LoraTiles& tiles,
                const void* workspace, Stream stream) {
  return with_nearest<2, 4, 8>(tiles.expand.warps, [&](auto warps) {
    constexpr int kWarps = decltype(warps)::value;
    return with_nearest<1, 2>(tiles.expand.width / (kGroupOuts * kWarps), [&](auto groups) {
      return gated_with<T, kBands, decltype(groups)::value, kWarps / 2>(call, gate, tiles,
                                                                        workspace, stream);
    });
  });
}

}  // namespace

Status lora_expand_gated(const LoraCall& call, const LoraGate& gate, const LoraTiles& tiles,
                         const void* workspace, Stream stream) {
  if (call.sizes.all_tiles == 0 || call.slices[kGate].out == 0) return cudaSuccess;
  if (call.dtype == Dtype::kFloat)
    return lora_expand_gated_plain(call, gate, tiles, const_cast<void*>(workspace), stream);
  return with_half_type(call.dtype, [&](auto type) {
    using T = decltype(type);
    return call.sizes.tile_tokens > 16 ? gated_in<T, 2>(call, gate, tiles, workspace, stream)
                                       : gated_in<T, 1>(call, gate, tiles, workspace, stream);
  });
}

}  // namespace valora::kernels::cuda
