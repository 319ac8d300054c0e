// y = x Wᵀ + b, and the low-rank products that adapters add (DESIGN §4, VaLoRA §4.3).
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/linear/project.h"

namespace valora::ops {

// A weight [out, in] and its bias, in the form its device multiplies fastest: panels on CPUs
// (kernels/cpu/panels.h), else, and for the reference backend, plain tensors.
class Weight {
 public:
  Weight() = default;
  // Reads w: [out, in] and bias: [out] of any dtype, on any device; keeps them in `dtype` on
  // `device`.
  Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device, const at::Tensor& bias = {});

  // w: [out, in] and bias: [out], kept as they are whatever the backend: the form that gradients
  // flow through.
  static Weight plain(at::Tensor w, at::Tensor bias = {});

  // The same shape, form and bias over other values: `data` is as data() is, and is kept, not
  // copied.
  Weight with_data(at::Tensor data) const;

  // Takes w's values, [out, in] of any dtype, in the place of its own, in the same memory: bit for
  // bit what the constructor makes of them.
  void refill(const at::Tensor& w);

  bool defined() const { return data_.defined(); }
  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  at::ScalarType dtype() const { return data_.scalar_type(); }
  size_t bytes() const { return data_.nbytes(); }
  bool packed() const { return packed_; }
  const at::Tensor& data() const { return data_; }  // panels [1-d], or [out, in]
  const at::Tensor& bias() const {
    return bias_;
  }  // float beside panels, else of dtype(); or undefined
  at::Tensor unpacked() const;  // [out, in]

 private:
  at::Tensor data_, bias_;
  int64_t out_ = 0, in_ = 0;
  bool packed_ = false;
};

// One adapter on one linear.
struct LoraWeight {
  Weight a;  // [rank, in]
  Weight b;  // [out, rank]
};

inline constexpr size_t kMaxSlices = kernels::kMaxSlices;

// In training alone: a part's input loses each of its values with this probability, the others grow
// by 1 / (1 - it). The seed decides which, so that a step that is computed again loses the same.
struct Dropout {
  double probability = 0;
  uint64_t seed = 0;
};

// Tokens [token_begin, token_end) of the flat batch under one adapter: to each linear s of a
// projection whose weight is there, y_s += coefficient · (x Aᵀ) Bᵀ. Segments of other adapters may
// cover the same tokens.
struct LoraSegment {
  struct Part {
    const LoraWeight* weight = nullptr;
    float coefficient = 1;
    Dropout dropout{};
  };
  int64_t token_begin = 0;
  int64_t token_end = 0;
  std::array<Part, kMaxSlices> parts{};
};

// These differentiate with respect to x and to adapters where weights and adapters are plain
// (Weight::plain, or weights of the reference backend); packed ones refuse an x that wants
// gradients.

// Up to kMaxSlices linears of one input, in one launch. x: [T, in] contiguous, of the weights'
// dtype; → of each weight [T, out].
std::vector<at::Tensor> project(const at::Tensor& x, std::span<const Weight* const> weights,
                                std::span<const LoraSegment> segments = {});
at::Tensor linear(const at::Tensor& x, const Weight& w, std::span<const LoraSegment> segments = {});
// silu(gate) · up of two linears of one shape. [T, out]
at::Tensor gated(const at::Tensor& x, const Weight& gate, const Weight& up,
                 std::span<const LoraSegment> segments = {});
// A linear with a float result: logits keep their precision.
at::Tensor linear_float(const at::Tensor& x, const Weight& w);

}  // namespace valora::ops
