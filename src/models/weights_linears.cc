// Linears of a checkpoint, or the parts of them that a rank has.
#include "models/quantised/stored_linear.h"
#include "models/spec/load_error.h"
#include "models/weights.h"

namespace valora::models {

ops::Weight Weights::linear(const std::string& name, int64_t out, int64_t in, bool bias,
                            LinearPart part, const adapters::Partition& partition) {
  const bool shared = shard_.of > 1 && partition.split == adapters::Split::kWhole;
  if (shared)
    if (const auto known = shared_linears_.find(name); known != shared_linears_.end())
      return known->second;
  const LinearSlice slice{out, in, slice_of(partition, out, in, shard_.rank, shard_.of)};
  const auto quantised = quantised_slice(name, slice);
  ops::Weight weight = weight_of(name, quantised.get(), slice, bias, part);
  if (quantised && quantised->input_rounding) round_inputs(name, *quantised, part, weight);
  if (shared) shared_linears_.emplace(name, weight);
  return weight;
}

ops::Weight Weights::weight_of(const std::string& name, const StoredLinear* quantised,
                               const LinearSlice& slice, bool bias, LinearPart part) {
  const auto& [out, in, has] = slice;
  if (quantised && !bias) pass_over_zero_bias(name);
  if (shard_.rank == 0) {
    if (quantised) {
      ++quantised_.linears;
      quantised_.parameters += out * in;
      if (serves_integers(*quantised, has.in.size())) ++quantised_.integers;
    } else if (is_quantised()) {
      quantised_.kept.push_back(name);
    }
  }
  size_t& held = part == LinearPart::kDecoder ? held_.decoder
                 : part == LinearPart::kHead  ? held_.head
                                              : held_.other;
  at::Tensor b;
  if (bias && has.in.begin == 0)
    b = get(name + ".bias", {out}).slice(0, has.out.begin, has.out.end);
  if (auto integers = integer_linear(name, quantised, slice, b, part)) {
    held += integers->bytes();
    return *std::move(integers);
  }
  const at::Tensor w = quantised ? decoded(*quantised, slice) : stored_part(name, slice);
  if (plain_) return ops::Weight::plain(w, b);
  const ops::Weight weight(w, dtype_, device_, b);
  const bool integers = quantised && serves_integers(*quantised, in);  // on the meta device
  held += integers ? ops::quantised_bytes(out, in, *quantised->form, quantised->float_scales,
                                          quantised->has_minimums)
                   : weight.bytes();
  // If it was not packed, it may be the memory of the file.
  const bool aliased = !quantised && weight.data().is_alias_of(w);
  return aliased ? weight.with_data(weight.data().clone()) : weight;
}

at::Tensor Weights::stored_part(const std::string& name, const LinearSlice& slice) {
  const auto& [out, in] = slice.has;
  return floats(name + ".weight", {slice.out, slice.in})
      .slice(0, out.begin, out.end)
      .slice(1, in.begin, in.end)
      .to(at::TensorOptions().dtype(dtype_).device(device_));
}

void Weights::refill(const std::string& name, ops::Weight& weight, const LinearSlice& slice) {
  const std::lock_guard lock(refilling_);
  const auto quantised = quantised_slice(name, slice);
  weight.refill(quantised ? decoded(*quantised, slice) : stored_part(name, slice));
}

}  // namespace valora::models
