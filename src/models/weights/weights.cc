#include "models/weights/weights.h"

#include <ATen/Parallel.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/log/log.h"
#include "models/quantised/config.h"
#include "models/quantised/stored_linear.h"
#include "models/spec/load_error.h"
#include "models/weights/weight_files.h"

namespace valora::models {
namespace {

bool same_bits(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

// Reads `size` bytes from `begin` on, with all threads.
Result<at::Tensor> read_bytes(const InputFile& file, size_t begin, size_t size) {
  constexpr int64_t kPiece = int64_t{4} << 20;
  at::Tensor bytes = at::empty({static_cast<int64_t>(size)}, at::kByte);
  char* const data = reinterpret_cast<char*>(bytes.mutable_data_ptr());
  std::atomic<bool> complete = true;
  at::parallel_for(0, static_cast<int64_t>(size), kPiece, [&](int64_t from, int64_t to) {
    const std::span<char> part(data + from, static_cast<size_t>(to - from));
    const auto done = file.read(begin + static_cast<size_t>(from), part);
    if (!done.ok() || *done != part.size()) complete = false;
  });
  if (!complete) return unprocessable(file.path() + " could not be read again", file.path());
  return bytes;
}

}  // namespace

std::optional<at::ScalarType> scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF64: return at::kDouble;
    case DType::kF32: return at::kFloat;
    case DType::kF16: return at::kHalf;
    case DType::kBF16: return at::kBFloat16;
    default: return std::nullopt;
  }
}

at::ScalarType stored_type(DType dtype) {
  switch (dtype) {
    case DType::kI64: return at::kLong;
    case DType::kI32: return at::kInt;
    case DType::kI16: return at::kShort;
    case DType::kI8: return at::kChar;
    case DType::kU8: return at::kByte;
    case DType::kBool: return at::kBool;
    case DType::kF8E4M3: return at::kFloat8_e4m3fn;
    default: return *scalar_type(dtype);
  }
}

at::Tensor tensor_of(const TensorView& view) {
  const auto options = at::TensorOptions().dtype(stored_type(view.dtype));
  void* data = const_cast<uint8_t*>(view.bytes.data());
  if (reinterpret_cast<uintptr_t>(data) % dtype_size(view.dtype) == 0)
    return at::from_blob(data, view.shape, options);
  at::Tensor copy = at::empty(view.shape, options);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<uint8_t*>(copy.mutable_data_ptr()));
  return copy;
}

Result<std::unique_ptr<Weights>> Weights::open(const ModelSource& source) {
  auto weights = std::make_unique<Weights>();
  const std::string& dir = source.path;
  weights->dir_ = dir;
  VALORA_TRY(gguf, open_gguf_model(source));
  if (gguf) {
    VALORA_CHECK(weights->open_gguf(*gguf));
    return weights;
  }
  VALORA_TRY(files, find_weight_files(dir));
  for (const std::string& path : files.paths) VALORA_CHECK(weights->open_file(path));
  if (files.shards_ignored)
    spdlog::warn(
        "{}: model.safetensors is read, as transformers reads it; vLLM would read the shards of "
        "model.safetensors.index.json next to it: delete the older of the two",
        dir);
  return weights;
}

Status Weights::open_file(const std::string& path) {
  VALORA_TRY(input, InputFile::open(path));
  VALORA_TRY(mapped, SafeTensors::open(path));
  const uint8_t* const data = mapped->bytes().data();
  for (const auto& [name, view] : mapped->tensors()) {
    const auto begin = static_cast<size_t>(view.bytes.data() - data);
    const auto [it, added] = entries_.emplace(name, Entry{view, name, files_.size(), begin});
    if (!added && !same_bits(it->second.view, view))
      return unprocessable(path + ": tensor " + name + " has a different value in " +
                               files_[it->second.file].input.path() + ": delete one",
                           path);
  }
  files_.push_back({std::move(input), std::move(mapped)});
  return {};
}

Status Weights::check_unchanged(const InputFile& file) {
  VALORA_TRY(
      now, InputFile::from_descriptor(file.path(), ::fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0)));
  const FileIdentity &a = file.identity(), &b = now.identity();
  if (a.size == b.size && a.modified_ns == b.modified_ns) return {};
  return unprocessable(file.path() + " was changed while it was in use", file.path());
}

Status Weights::unmap() {
  shared_tensors_.clear();
  shared_linears_.clear();
  for (auto* entries : {&entries_, &parts_})
    for (auto& [name, entry] : *entries) {
      entry.view.bytes = {};
      for (Entry& piece : entry.pieces) piece.view.bytes = {};
    }
  for (File& file : files_) {
    file.mapped = nullptr;
    VALORA_CHECK(check_unchanged(file.input));
  }
  return {};
}

at::Tensor Weights::stored(const Entry& entry) const {
  if (!entry.pieces.empty()) return stored_pieces(entry);
  const File& file = files_[entry.file];
  if (file.mapped) return tensor_of(entry.view);
  auto bytes = read_bytes(file.input, entry.begin, byte_size(entry.view));
  const Status unchanged = check_unchanged(file.input);
  if (!unchanged.ok()) throw LoadError(unchanged.error());
  if (!bytes.ok()) throw LoadError(bytes.error());
  return bytes->view(stored_type(entry.view.dtype)).view(entry.view.shape);
}

const Weights::Entry* Weights::find(const std::string& canonical) const {
  const auto at_name = [&](const std::string& name) {
    for (const auto* entries : {&entries_, &parts_})
      if (const auto it = entries->find(name); it != entries->end()) return &it->second;
    return static_cast<const Entry*>(nullptr);
  };
  if (const Entry* entry = at_name(canonical)) return entry;
  for (const auto& alias : aliases_)
    if (canonical.starts_with(alias.canonical))
      if (const Entry* entry = at_name(alias.alias + canonical.substr(alias.canonical.size())))
        return entry;
  return nullptr;
}

at::Tensor Weights::get(const std::string& name, const std::vector<int64_t>& shape) {
  if (const auto shared = shared_tensors_.find(name); shared != shared_tensors_.end())
    return shared->second;
  const at::Tensor own = own_tensor(name, shape);
  if (shard_.of > 1) shared_tensors_.emplace(name, own);
  return own;
}

at::Tensor Weights::on_each(const std::string& name, const std::vector<int64_t>& shape) {
  return device_.is_cuda() && shard_.rank > 0 ? own_tensor(name, shape) : get(name, shape);
}

at::Tensor Weights::own_tensor(const std::string& name, const std::vector<int64_t>& shape) {
  const at::Tensor tensor = view(name, shape);
  held_.other += tensor.nbytes();
  const Entry& entry = *find(name);
  const bool mapped = files_[entry.file].mapped && tensor.is_cpu() &&
                      tensor.const_data_ptr() == entry.view.bytes.data();
  return mapped && !plain_ ? tensor.clone() : tensor;
}

at::Tensor Weights::view(const std::string& name, const std::vector<int64_t>& shape) {
  return floats(name, shape).to(at::TensorOptions().dtype(dtype_).device(device_));
}

at::Tensor Weights::floats(const std::string& name, const std::vector<int64_t>& shape) {
  const Entry* entry = find(name);
  if (!entry)
    throw LoadError(
        unprocessable(dir_ + ": the checkpoint has no tensor " + name +
                          (find_weight_files(dir_).ok() && find_weight_files(dir_)->shards_ignored
                               ? " in model.safetensors, which is read instead of the shards of "
                                 "model.safetensors.index.json next to it"
                               : "") +
                          quantised_hint(name),
                      dir_));
  check_shape(*entry, shape);
  const DType dtype = entry->view.dtype;
  if (!scalar_type(dtype) && !entry->has_blocks())
    throw LoadError(unprocessable(dir_ + ": tensor " + entry->stored_name + " has dtype " +
                                      dtype_name(dtype) + ", which is not supported for weights",
                                  dir_));
  used_.insert(entry->stored_name);
  if (entry->columns) return columns_of(*entry);
  if (!entry->gguf) return stored(*entry);
  if (device_.is_meta()) return at::empty(shape, at::TensorOptions().dtype(dtype_).device(device_));
  return restored(*entry, stored(*entry), dtype_);
}

void Weights::check_shape(const Entry& entry, const std::vector<int64_t>& required) const {
  if (entry.shape() == required) return;
  throw LoadError(unprocessable(
      fmt::format("{}: tensor {} has shape [{}], but the configuration requires [{}]", dir_,
                  entry.stored_name, fmt::join(entry.shape(), ", "), fmt::join(required, ", ")),
      dir_));
}

Result<at::Tensor> Weights::stored_values(const std::string& name, size_t first,
                                          size_t count) const {
  return values_of(*find(name), first, count);
}

Result<at::Tensor> Weights::values_of(const Entry& entry, size_t first, size_t count) const {
  if (!entry.pieces.empty()) return piece_values(entry, first, count);
  if (entry.gguf) return restored_values(entry, first, count);
  if (entry.columns) return column_values(entry, first, count);
  const InputFile& file = files_[entry.file].input;
  const auto type = scalar_type(entry.view.dtype);
  if (!type)
    return unprocessable(file.path() + ": tensor " + entry.stored_name + " has dtype " +
                         dtype_name(entry.view.dtype));
  at::Tensor values = at::empty({static_cast<int64_t>(count)}, *type);
  const std::span<char> bytes(static_cast<char*>(values.mutable_data_ptr()), values.nbytes());
  VALORA_TRY(read, file.read(entry.begin + first * dtype_size(entry.view.dtype), bytes));
  VALORA_CHECK(check_unchanged(file));
  if (read == bytes.size()) return values;
  return unprocessable(file.path() + " could not be read again", file.path());
}

void Weights::leave_out(const std::string& prefix) {
  const std::vector<std::string> prefixes = names_of(prefix);
  for (const auto& [name, entry] : entries_)
    for (const std::string& candidate : prefixes)
      if (name.starts_with(candidate)) used_.insert(entry.stored_name);
}

at::ScalarType Weights::stored_dtype() const {
  std::map<DType, size_t> bytes;
  for (const auto& [name, entry] : entries_)
    if (entry.has_blocks())
      bytes[DType::kBF16] += byte_size(entry.view);  // counted in their decoded form
    else if (scalar_type(entry.view.dtype))
      bytes[entry.view.dtype] += byte_size(entry.view);
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return most == bytes.end() ? at::kFloat : scalar_type(most->first).value_or(at::kFloat);
}

int64_t Weights::parameters() const {
  int64_t count = 0;
  for (const auto& [name, entry] : entries_) count += parameters_in(entry);
  return count;
}

size_t Weights::bytes() const {
  size_t total = 0;
  for (const auto& [name, entry] : entries_) total += byte_size(entry.view);
  return total;
}

Digest Weights::sketch() const {
  constexpr size_t kPieces = 16, kPieceBytes = 64;
  DigestBuilder digest;
  if (quantisation_) digest.add(quantisation_->text());  // it gives the integers their meaning
  const auto add = [&](const Entry& entry) {
    const std::span<const uint8_t> bytes = entry.view.bytes;
    const size_t length = std::min(kPieceBytes, bytes.size());
    for (size_t i = 0; i < kPieces; ++i)
      digest.add(bytes.subspan((bytes.size() - length) * i / (kPieces - 1), length));
  };
  for (const auto& [name, entry] : entries_) {
    digest.add(name)
        .add(dtype_name(entry.view.dtype))
        .add(std::span<const int64_t>(entry.view.shape));
    if (entry.gguf) digest.add(std::string_view(block_of(entry.gguf->type).name));
    if (entry.pieces.empty()) add(entry);
    for (const Entry& piece : entry.pieces) add(piece);
  }
  return digest.finish();
}

std::vector<std::string> Weights::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_)
    if (!used_.contains(entry.stored_name)) names.push_back(entry.stored_name);
  return names;
}

}  // namespace valora::models
