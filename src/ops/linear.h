// y = x Wᵀ + b, and the low-rank products that adapters add (DESIGN §4, VaLoRA §4.3).
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <span>

namespace valora::ops {

// A weight [out, in] in the form its device multiplies fastest: panels on CPUs (bf16), else the plain tensor.
class Weight {
 public:
  Weight() = default;
  // Reads w: [out, in] of any dtype, on any device; keeps it in `dtype` on `device`.
  Weight(const at::Tensor& w, at::ScalarType dtype, at::Device device);

  int64_t out() const { return out_; }
  int64_t in() const { return in_; }
  at::ScalarType dtype() const { return data_.scalar_type(); }
  size_t bytes() const { return data_.nbytes(); }
  bool packed() const { return packed_; }
  const at::Tensor& data() const { return data_; }  // panels [1-d], or [out, in]

 private:
  at::Tensor data_;
  int64_t out_ = 0, in_ = 0;
  bool packed_ = false;
};

// x: [T, in] contiguous, of the weight's dtype → [T, out].
at::Tensor linear(const at::Tensor& x, const Weight& w, const at::Tensor& bias = {});
// The same with a float result: logits keep their precision.
at::Tensor linear_float(const at::Tensor& x, const Weight& w);

// One adapter on one linear.
struct LoraWeight {
  Weight a;  // [rank, in]
  Weight b;  // [out, rank]
};

// Tokens [token_begin, token_end) of the flat batch: y += coefficient · (x Aᵀ) Bᵀ.
struct LoraSegment {
  int64_t token_begin = 0;
  int64_t token_end = 0;
  const LoraWeight* weight = nullptr;
  float coefficient = 1;
};

// Adds every segment into y: [T, out]. Segments are ascending; those of one token (a sum of adapters)
// may overlap.
void add_lora(at::Tensor& y, const at::Tensor& x, std::span<const LoraSegment> segments);

}  // namespace valora::ops
