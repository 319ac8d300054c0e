#include "models/quantised/stored_linear.h"

#include <fmt/format.h>

#include <algorithm>

namespace valora::models {
namespace {

StoredLinear read_packing(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                          int64_t in) {
  switch (scheme.packing) {
    case Packing::kWords: return read_compressed_words(tensors, scheme, out, in);
    case Packing::kBytes: return read_compressed_bytes(tensors, scheme, out, in);
    case Packing::kGptq: return read_gptq(tensors, scheme, out, in);
    case Packing::kCodes: return read_codes(tensors, scheme, out, in);
    case Packing::kRows: return read_rows(tensors, scheme, out, in);
    case Packing::kAwq: return read_awq(tensors, scheme, out, in);
    case Packing::kFloats:
    case Packing::kFp8: return read_floats(tensors, scheme, out, in);
  }
  return {};
}

ops::InputRounding read_input_rounding(LinearTensors& tensors, const QuantisedScheme& scheme) {
  ops::InputRounding rounding;
  if (scheme.packing == Packing::kFloats) rounding.grid = ops::InputRounding::Grid::kFp8;
  if (scheme.inputs == InputScale::kToken) return rounding;
  const at::Tensor scale = tensors.take_scales("input_scale", {{1}, {}});
  if (!scale.defined()) return rounding;
  rounding.scale = scale.item<float>();
  if (rounding.scale <= 0) tensors.fail("input_scale", "is not positive");
  return rounding;
}

}  // namespace

int64_t group_of(const QuantisedScheme& scheme, int64_t in) {
  return scheme.scope == ScaleScope::kGroup ? std::min(scheme.group, in) : in;
}

int64_t groups_of(const QuantisedScheme& scheme, int64_t in) {
  const int64_t group = group_of(scheme, in);
  return (in + group - 1) / group;
}

at::Tensor rows_of(const at::Tensor& tensor, const adapters::Shares& rows) {
  if (rows.count == 1) return tensor.slice(0, rows.of[0].begin, rows.of[0].end);
  std::vector<at::Tensor> sections;
  for (size_t i = 0; i < rows.count; ++i)
    sections.push_back(tensor.slice(0, rows.of[i].begin, rows.of[i].end));
  return at::cat(sections);
}

StoredLinear StoredLinear::part(const adapters::MatrixSlice& slice) const {
  const auto& [out, in] = slice;
  StoredLinear cut = *this;
  if (integers) {
    const auto rows = [&](const at::Tensor& t) { return t.defined() ? rows_of(t, out) : t; };
    const ops::QuantisedTensor& all = *integers;
    const ops::QuantisedTensor outputs{rows(all.values), all.bits,  rows(all.scales),
                                       rows(all.zeros),  all.group, rows(all.minimums)};
    cut.integers = outputs.part({0, out.size()}, {in.begin, in.end});
    cut.form->group = cut.integers->group;
  } else {
    cut.values = rows_of(values, out).slice(1, in.begin, in.end);
  }
  return cut;
}

StoredLinear in_order(ops::QuantisedTensor parts, const at::Tensor& order) {
  const int64_t in = parts.values.size(1);
  const at::Tensor index = order.to(at::kLong);
  if (at::equal(index, at::arange(in, at::kLong).floor_divide(parts.group)))
    return {std::move(parts), {}};
  const at::Tensor integers =
      parts.values.to(at::kFloat).sub_(parts.zeros.to(at::kFloat).index_select(1, index));
  return {std::nullopt, integers * parts.scales.index_select(1, index)};
}

StoredLinear read_stored_linear(LinearTensors& tensors, const QuantisedScheme& scheme, int64_t out,
                                int64_t in) {
  StoredLinear linear = read_packing(tensors, scheme, out, in);
  const bool decoded = scheme.packing == Packing::kFloats || scheme.packing == Packing::kFp8 ||
                       scheme.packing == Packing::kCodes;
  if (linear.integers || (!decoded && !linear.values.defined()))
    linear.form = {scheme.bits, group_of(scheme, in)};
  if (scheme.inputs != InputScale::kNone)
    linear.input_rounding = read_input_rounding(tensors, scheme);
  return linear;
}

void check_groups(const LinearTensors& tensors, const QuantisedScheme& scheme, const char* part,
                  int64_t in) {
  if (in % group_of(scheme, in) != 0)
    tensors.fail(part,
                 fmt::format("has {} inputs, which groups of {} do not divide", in, scheme.group));
}

}  // namespace valora::models
