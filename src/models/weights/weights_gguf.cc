// Loading tensors from a GGUF file.
#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "models/quantised/gguf_blocks.h"
#include "models/quantised/stored_linear.h"
#include "models/spec/gguf_config.h"
#include "models/spec/load_error.h"
#include "models/weights/weights.h"

namespace valora::models {
namespace {

DType float_type(GgufType type) {
  return type == GgufType::kF32 ? DType::kF32 : type == GgufType::kF16 ? DType::kF16 : DType::kBF16;
}

// Already read by gguf_config().
constexpr char kRopeFactors[] = "rope_freqs.weight";

}  // namespace

bool Weights::Entry::has_blocks() const { return gguf && in_blocks(gguf->type); }

Status Weights::open_gguf(const std::string& path) {
  VALORA_TRY(input, InputFile::open(path));
  VALORA_TRY(file, Gguf::open(path));
  VALORA_TRY(config, gguf_config(*file));
  std::vector<std::string> types;
  for (const GgufTensor& tensor : file->tensors()) {
    VALORA_TRY(source, gguf_source(*file, tensor, config));
    Entry entry{{DType::kU8, {}, tensor.bytes}, tensor.name, files_.size(), tensor.begin};
    if (in_blocks(tensor.type)) {
      const int64_t rows = tensor.shape.size() > 1 ? tensor.shape.front() : 1;
      const auto bytes = static_cast<int64_t>(tensor.bytes.size());
      entry.view.shape = {rows, rows == 0 ? 0 : bytes / rows};
      if (const std::string name = block_of(tensor.type).name; !std::ranges::count(types, name))
        types.push_back(name);
    } else {
      entry.view.dtype = float_type(tensor.type);
      entry.view.shape = tensor.shape;
    }
    if (in_blocks(tensor.type) || source.head_rows > 0 || source.one_more)
      entry.gguf = std::make_shared<GgufForm>(GgufForm{tensor.type, tensor.shape, source});
    if (tensor.name == kRopeFactors) used_.insert(tensor.name);
    if (!entries_.emplace(source.name, std::move(entry)).second)
      return unprocessable(path + ": two tensors are " + source.name, path);
  }
  std::ranges::sort(types);
  has_blocks_ = !types.empty();
  quantised_.format = kGgufFormat;
  quantised_.encoding = fmt::format("{}", fmt::join(types, " and "));
  files_.push_back({std::move(input), std::move(file)});
  return {};
}

at::Tensor Weights::restored(const Entry& entry, const at::Tensor& rows, at::ScalarType dtype) {
  const GgufForm& form = *entry.gguf;
  at::Tensor values = in_blocks(form.type) ? decode_blocks(form.type, rows, dtype) : rows;
  if (form.shape.size() == 1) values = values.view({-1});
  if (form.source.one_more) values = values.to(at::kFloat) - 1;
  if (form.source.head_rows > 0)
    values = values.index_select(0, rows_of_halves(values.size(0), form.source.head_rows));
  return values;
}

// Converts the rows that hold these values.
Result<at::Tensor> Weights::restored_values(const Entry& entry, size_t first, size_t count) const {
  const InputFile& file = files_[entry.file].input;
  const auto rows = static_cast<size_t>(entry.view.shape.front()),
             row_bytes = byte_size(entry.view) / rows;
  size_t width = 1;
  for (const int64_t size : entry.shape()) width *= static_cast<size_t>(size);
  width /= rows;
  const auto together = static_cast<size_t>(std::max<int64_t>(1, entry.gguf->source.head_rows));
  const size_t begin = first / width / together * together;
  const size_t end = std::min(rows, ((first + count - 1) / width / together + 1) * together);
  std::vector<int64_t> sizes = entry.view.shape;
  sizes.front() = static_cast<int64_t>(end - begin);
  at::Tensor stored = at::empty(sizes, stored_type(entry.view.dtype));
  const std::span<char> bytes(static_cast<char*>(stored.mutable_data_ptr()), stored.nbytes());
  VALORA_TRY(read, file.read(entry.begin + begin * row_bytes, bytes));
  VALORA_CHECK(check_unchanged(file));
  if (read != bytes.size())
    return unprocessable(file.path() + " could not be read again", file.path());
  const auto from = static_cast<int64_t>(first - begin * width);
  return restored(entry, stored, at::kFloat)
      .reshape({-1})
      .slice(0, from, from + static_cast<int64_t>(count))
      .clone();
}

StoredLinear Weights::block_linear(const Entry& entry, int64_t out, int64_t in) {
  check_shape(entry, {out, in});
  used_.insert(entry.stored_name);
  const BlockIntegers kept = integers_of_blocks(entry.gguf->type);
  StoredLinear linear;
  linear.form = kept.form;
  linear.float_scales = kept.float_scales;
  linear.has_minimums = kept.minimums;
  if (device_.is_meta()) return linear;
  ops::QuantisedTensor integers = read_blocks(entry.gguf->type, stored(entry));
  for (const at::Tensor& scales : {integers.scales, integers.minimums})
    if (scales.defined() && !at::isfinite(scales).all().item<bool>())
      throw LoadError(unprocessable(
          dir_ + ": tensor " + entry.stored_name + " has scales that are not finite", dir_));
  if (entry.gguf->source.head_rows > 0)
    integers = integers.in_rows(rows_of_halves(out, entry.gguf->source.head_rows));
  linear.integers = std::move(integers);
  return linear;
}

}  // namespace valora::models
