// 4-bit codes of bitsandbytes (nf4, fp4): each selects a table entry, which is multiplied by the
// scale of its block in the flattened weight. Scales may themselves be 8-bit codes ("nested").
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json/json.h"
#include "models/quantised/stored_linear.h"
#include "ops/device/parallel.h"

namespace valora::models {
namespace {

constexpr std::array kStates = {"weight.quant_state.bitsandbytes__nf4",
                                "weight.quant_state.bitsandbytes__fp4"};

// The contents of the JSON tensor stored with the codes.
struct BlockState {
  int64_t block = 0, nested_block = 0;  // weights per scale, and scales per nested scale
  double offset = 0;                    // added to nested scales
  bool nested = false;
};

std::string state_part(const LinearTensors& tensors) {
  const auto found = std::ranges::find_if(kStates, [&](const char* p) { return tensors.has(p); });
  if (found == kStates.end())
    tensors.fail(kStates[0], "is missing, but the quantised weights of this linear need it");
  return *found;
}

Json state_json(LinearTensors& tensors, const std::string& part) {
  constexpr size_t kMostBytes = 1 << 16;
  const TensorView& view = *tensors.find(part);
  if (view.dtype != DType::kU8 || view.shape.size() != 1 || byte_size(view) > kMostBytes)
    tensors.fail(part, "is not a text of bytes");
  const at::Tensor read = tensors.read(part);
  // Even if tensors are not read, the file is still mapped.
  const auto* bytes = read.defined() ? read.const_data_ptr<uint8_t>() : view.bytes.data();
  auto json = parse_json({reinterpret_cast<const char*>(bytes), byte_size(view)}, part);
  if (!json.ok() || !json->is_object()) tensors.fail(part, "is not a JSON object");
  return *std::move(json);
}

BlockState read_state(LinearTensors& tensors, int64_t out, int64_t in) {
  const std::string part = state_part(tensors);
  const Json json = state_json(tensors, part);
  const auto number = [&](const char* key) {
    const auto it = json.find(key);
    constexpr int64_t kMost = int64_t{1} << 20;
    if (it == json.end() || !it->is_number_integer() || *it < 1 || *it > kMost)
      tensors.fail(part, fmt::format("has no size \"{}\"", key));
    return it->get<int64_t>();
  };
  const Json shape = json.contains("shape") ? json["shape"] : Json();
  if (shape != Json({out, in}))
    tensors.fail(part, fmt::format("has the shape {}, but the configuration requires [{}, {}]",
                                   shape.dump(), out, in));
  BlockState state{.block = number("blocksize"), .nested = tensors.has("weight.nested_absmax")};
  if (!state.nested) return state;
  state.nested_block = number("nested_blocksize");
  const auto offset = json.find("nested_offset");
  if (offset == json.end() || !offset->is_number()) tensors.fail(part, "has no nested_offset");
  state.offset = offset->get<double>();
  if (!std::isfinite(static_cast<float>(state.offset)))
    tensors.fail(part, "has a nested_offset that is not finite");
  return state;
}

// Returns float [blocks].
at::Tensor read_block_scales(LinearTensors& tensors, const BlockState& state, int64_t blocks) {
  if (!state.nested) return tensors.take_scales("weight.absmax", {{blocks}});
  const int64_t outer = (blocks + state.nested_block - 1) / state.nested_block;
  const at::Tensor codes = tensors.take("weight.absmax", {DType::kU8}, {{blocks}}),
                   scales = tensors.take_scales("weight.nested_absmax", {{outer}}),
                   table = tensors.take_scales("weight.nested_quant_map", {{256}});
  if (!codes.defined()) return codes;
  at::Tensor made = table.index_select(0, codes.to(at::kLong));
  made.mul_(scales.repeat_interleave(state.nested_block).slice(0, 0, blocks));
  made.add_(at::scalar_tensor(static_cast<float>(state.offset)));
  if (!at::isfinite(made).all().item<bool>())
    tensors.fail("weight.nested_absmax", "makes scales that are not finite");
  return made;
}

// Bytes that hold two codes each. Some writers store them under a wider dtype, for sharded
// training.
at::Tensor read_bytes(LinearTensors& tensors, int64_t count) {
  const TensorView* view = tensors.find("weight");
  const int64_t bytes = (count + 1) / 2;
  const auto size = static_cast<int64_t>(view ? dtype_size(view->dtype) : 1);
  if (bytes % size != 0) tensors.fail("weight", fmt::format("cannot hold {} codes", count));
  const at::Tensor stored =
      tensors.take("weight", {DType::kU8, DType::kI8, DType::kBF16, DType::kF16, DType::kF32},
                   {{bytes / size, 1}, {1, bytes / size}});
  return stored.defined() ? stored.contiguous().view({-1}).view(at::kByte) : stored;
}

}  // namespace

StoredLinear read_codes(LinearTensors& tensors, const QuantisedScheme&, int64_t out, int64_t in) {
  const BlockState state = read_state(tensors, out, in);
  const int64_t count = out * in;
  const at::Tensor bytes = read_bytes(tensors, count),
                   table = tensors.take_scales("weight.quant_map", {{16}}),
                   scales =
                       read_block_scales(tensors, state, (count + state.block - 1) / state.block);
  if (!bytes.defined()) return {};
  at::Tensor values = at::empty({out, in}, at::kFloat);
  const auto* code = bytes.const_data_ptr<uint8_t>();
  const auto* entry = table.const_data_ptr<float>();
  const auto* scale = scales.const_data_ptr<float>();
  auto* to = values.mutable_data_ptr<float>();
  const int64_t block = state.block;
  ops::torch_parallel()(0, count, 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      to[i] = entry[i % 2 == 0 ? code[i / 2] >> 4 : code[i / 2] & 15] * scale[i / block];
  });
  return {std::nullopt, std::move(values)};
}

}  // namespace valora::models
