// Loading linears of a checkpoint, or a rank's parts of them.
#include "models/quantised/stored_linear.h"
#include "models/spec/load_error.h"
#include "models/weights/weights.h"

namespace valora::models {

ops::Weight Weights::linear(const std::string& name, int64_t out, int64_t in, bool bias,
                            LinearPart part, const adapters::Partition& partition) {
  const bool shared = shard_.of > 1 && partition.split == adapters::Split::kWhole;
  if (shared)
    if (const auto known = shared_linears_.find(name); known != shared_linears_.end()) {
      const ops::Weight& of_first = known->second;
      // Without values, which would be copied when linears with the same input are placed together.
      if (!device_.is_cuda()) return of_first;
      const at::Tensor& data = of_first.data();
      return of_first.with_data(at::empty(data.sizes(), data.options().device(at::kMeta)));
    }
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
  if (quantised && !bias) skip_zero_bias(name);
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
  if (bias && has.in.begin == 0) b = rows_of(get(name + ".bias", {out}), has.out);
  if (auto integers = integer_linear(name, quantised, slice, b, part)) {
    held += integers->bytes();
    return *std::move(integers);
  }
  const auto to = plain_ && !quantised ? quantisation(part) : std::nullopt;
  const at::Tensor w = quantised ? decoded(*quantised, slice, device_)
                       : to      ? rounded(name, slice, *to).decoded().to(dtype_)
                                 : stored_part(name, slice, device_);
  if (plain_) return ops::Weight::plain(w, b);
  const ops::Weight weight(w, dtype_, device_, b);
  const bool integers = quantised && serves_integers(*quantised, in);  // on the meta device
  held += integers ? ops::quantised_bytes(out, in, *quantised->form, quantised->float_scales,
                                          quantised->has_minimums)
                   : weight.bytes();
  // An unpacked weight may still be the file's mapped memory.
  const bool aliased = !quantised && weight.data().is_alias_of(w);
  return aliased ? weight.with_data(weight.data().clone()) : weight;
}

at::Tensor Weights::stored_part(const std::string& name, const LinearSlice& slice,
                                at::Device device) {
  const auto& [out, in] = slice.has;
  return rows_of(floats(name + ".weight", {slice.out, slice.in}), out)
      .slice(1, in.begin, in.end)
      .to(at::TensorOptions().dtype(dtype_).device(device));
}

Result<Weights::ReadRows> Weights::served_rows(const std::string& name, int64_t out, int64_t in,
                                               LinearPart part) {
  std::shared_ptr<const StoredLinear> stored;
  try {
    const std::lock_guard lock(refilling_);
    stored = quantised_linear(name, out, in);
  } catch (const LoadError& e) {
    return e.error();
  }
  if (stored) {
    const at::ScalarType held = serves_integers(*stored, in) ? at::kFloat : dtype_;
    return ReadRows([=](int64_t first, int64_t count) -> Result<at::Tensor> {
      const StoredLinear rows = stored->part({{first, first + count}, {0, in}});
      return rows.decoded().to(held).to(at::kFloat).contiguous();
    });
  }
  const auto to = quantisation(part);
  const at::ScalarType held = to && !plain_ ? at::kFloat : dtype_;
  return ReadRows([=, this](int64_t first, int64_t count) -> Result<at::Tensor> {
    VALORA_TRY(values, stored_values(name + ".weight", static_cast<size_t>(first * in),
                                     static_cast<size_t>(count * in)));
    const at::Tensor rows = values.view({count, in});
    return (to ? ops::quantise(rows, *to).decoded() : rows).to(held).to(at::kFloat).contiguous();
  });
}

void Weights::refill(const std::string& name, ops::Weight& weight, const LinearSlice& slice) {
  const std::lock_guard lock(refilling_);
  const auto quantised = quantised_slice(name, slice);
  const at::Device device = weight.data().device();
  weight.refill(quantised ? decoded(*quantised, slice, device) : stored_part(name, slice, device));
}

}  // namespace valora::models
