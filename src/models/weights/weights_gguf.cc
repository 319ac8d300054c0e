// Loading tensors from GGUF files.
#include <fcntl.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "models/quantised/gguf_blocks.h"
#include "models/quantised/stored_linear.h"
#include "models/spec/load_error.h"
#include "models/weights/weights.h"

namespace valora::models {
namespace {

DType float_type(GgufType type) {
  return type == GgufType::kF32 ? DType::kF32 : type == GgufType::kF16 ? DType::kF16 : DType::kBF16;
}

// Already read by gguf_config(), and a copy of one embedding.
constexpr std::array kUnneeded = {"rope_freqs.weight", "v.token_embd.img_break"};

}  // namespace

bool Weights::Entry::has_blocks() const { return gguf && in_blocks(gguf->type); }

Status Weights::open_gguf(const GgufModel& model) {
  VALORA_TRY(config, gguf_model_config(model));
  VALORA_TRY(language, gguf_language_sources(*model.language, config));
  VALORA_CHECK(add_gguf(model.language, language));
  if (model.vision) {
    VALORA_TRY(vision, gguf_vision_sources(*model.vision, config));
    VALORA_CHECK(add_gguf(model.vision, vision));
  }
  std::set<std::string> types;
  for (const auto& [name, entry] : entries_)
    if (entry.has_blocks()) types.insert(block_of(entry.gguf->type).name);
  has_blocks_ = !types.empty();
  quantised_.format = kGgufFormat;
  quantised_.encoding = fmt::format("{}", fmt::join(types, " and "));
  return {};
}

Status Weights::add_gguf(const std::shared_ptr<const Gguf>& file,
                         const std::vector<GgufSource>& sources) {
  const size_t first = files_.size();
  for (const std::string& path : file->parts()) {
    VALORA_TRY(input, InputFile::open(path));
    files_.push_back({std::move(input), file});
  }
  for (const GgufSource& source : sources) {
    Entry entry = joined_entry(source, first);
    if (std::ranges::find(kUnneeded, entry.stored_name) != kUnneeded.end())
      used_.insert(entry.stored_name);
    if (!entries_.emplace(source.name, std::move(entry)).second)
      return unprocessable(file->path() + ": two tensors are " + source.name, file->path());
  }
  return {};
}

// first: the index of the first of the files that the source is in.
Weights::Entry Weights::joined_entry(const GgufSource& source, size_t first) {
  std::vector<Entry> pieces;
  for (const GgufTensor* tensor : source.tensors) {
    const std::vector<int64_t>& shape = source.shape.empty() ? tensor->shape : source.shape;
    Entry entry{{DType::kU8, {}, tensor->bytes}, tensor->name, first + tensor->part, tensor->begin};
    if (in_blocks(tensor->type)) {
      const int64_t rows = shape.size() > 1 ? shape.front() : 1;
      const auto bytes = static_cast<int64_t>(tensor->bytes.size());
      entry.view.shape = {rows, rows == 0 ? 0 : bytes / rows};
    } else {
      entry.view.dtype = float_type(tensor->type);
      entry.view.shape = shape;
    }
    if (in_blocks(tensor->type) || source.head_rows > 0 || source.one_more)
      entry.gguf = std::make_shared<GgufForm>(
          GgufForm{tensor->type, shape, source.head_rows, source.one_more});
    pieces.push_back(std::move(entry));
  }
  if (pieces.size() == 1) return std::move(pieces.front());
  Entry whole = pieces.front();
  const auto count = static_cast<int64_t>(pieces.size());
  const auto widen = [&](std::vector<int64_t>& shape) {
    if (source.join == GgufJoin::kRows)
      shape.front() *= count;
    else
      shape.insert(shape.begin() + std::min<ptrdiff_t>(2, std::ssize(shape)), count);
  };
  widen(whole.view.shape);
  whole.view.bytes = {};
  if (whole.gguf) {
    GgufForm form = *whole.gguf;
    widen(form.shape);
    whole.gguf = std::make_shared<GgufForm>(std::move(form));
  }
  whole.pieces = std::move(pieces);
  whole.join = source.join;
  return whole;
}

at::Tensor Weights::stored_pieces(const Entry& entry) const {
  std::vector<at::Tensor> pieces;
  for (const Entry& piece : entry.pieces) pieces.push_back(stored(piece));
  return entry.join == GgufJoin::kRows ? at::cat(pieces) : at::stack(pieces, 2).contiguous();
}

Result<at::Tensor> Weights::piece_values(const Entry& entry, size_t first, size_t count) const {
  if (entry.join == GgufJoin::kFrames) {
    const auto begin = static_cast<int64_t>(first);
    try {
      return stored_pieces(entry).flatten().slice(0, begin, begin + static_cast<int64_t>(count));
    } catch (const LoadError& e) {
      return e.error();
    }
  }
  std::vector<at::Tensor> values;
  size_t begin = 0;
  for (const Entry& piece : entry.pieces) {
    size_t size = 1;
    for (const int64_t side : piece.shape()) size *= static_cast<size_t>(side);
    const size_t from = std::max(first, begin), to = std::min(first + count, begin + size);
    if (from < to) {
      VALORA_TRY(part, values_of(piece, from - begin, to - from));
      values.push_back(std::move(part));
    }
    begin += size;
  }
  return at::cat(values);
}

at::Tensor Weights::restored(const Entry& entry, const at::Tensor& rows, at::ScalarType dtype) {
  const GgufForm& form = *entry.gguf;
  at::Tensor values = in_blocks(form.type) ? decode_blocks(form.type, rows, dtype) : rows;
  if (form.shape.size() == 1) values = values.view({-1});
  if (form.one_more) values = values.to(at::kFloat) - 1;
  if (form.head_rows > 0)
    values = values.index_select(0, rows_of_halves(values.size(0), form.head_rows));
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
  const auto together = static_cast<size_t>(std::max<int64_t>(1, entry.gguf->head_rows));
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
  if (entry.gguf->head_rows > 0)
    integers = integers.in_rows(rows_of_halves(out, entry.gguf->head_rows));
  linear.integers = std::move(integers);
  return linear;
}

}  // namespace valora::models
