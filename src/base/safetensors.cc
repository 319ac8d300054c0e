#include "base/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/json.h"
#include "base/strings.h"

namespace valora {
namespace {

constexpr uint64_t kMaxHeader = 100u << 20;  // the reference reader's limit
constexpr size_t kMaxDimensions = 8;
// About ten values per tensor: enough for 100,000 tensors.
constexpr JsonLimits kHeaderLimits{
    .max_bytes = kMaxHeader, .max_depth = 4, .max_values = size_t{1} << 20, .unique_keys = true};

struct DTypeEntry {
  const char* name;
  DType dtype;
  size_t size;
};
constexpr std::array<DTypeEntry, 10> kDTypes{{{"F64", DType::kF64, 8},
                                              {"F32", DType::kF32, 4},
                                              {"F16", DType::kF16, 2},
                                              {"BF16", DType::kBF16, 2},
                                              {"I64", DType::kI64, 8},
                                              {"I32", DType::kI32, 4},
                                              {"I16", DType::kI16, 2},
                                              {"I8", DType::kI8, 1},
                                              {"U8", DType::kU8, 1},
                                              {"BOOL", DType::kBool, 1}}};

const DTypeEntry& entry_of(DType dtype) {
  return *std::find_if(kDTypes.begin(), kDTypes.end(),
                       [&](const auto& e) { return e.dtype == dtype; });
}

Result<TensorView> read_entry(const std::string& path, const std::string& name, const Json& entry,
                              std::span<const uint8_t> data) {
  const auto fail = [&](const std::string& why) {
    return unprocessable(path + ": tensor " + shortened(name) + ": " + why, path);
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    return fail("its header entry lacks dtype, shape or data_offsets");
  const Json& shape = entry["shape"];
  const Json& offsets = entry["data_offsets"];
  if (!entry["dtype"].is_string() || !shape.is_array() || shape.size() > kMaxDimensions ||
      !offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return fail("its header entry is malformed");

  const std::string dtype = entry["dtype"].get<std::string>();
  const auto type =
      std::find_if(kDTypes.begin(), kDTypes.end(), [&](const auto& e) { return dtype == e.name; });
  if (type == kDTypes.end()) return fail("dtype " + dtype + " is not supported");

  TensorView view{type->dtype, {}, {}};
  uint64_t size = type->size;
  for (const Json& dimension : shape) {
    if (!dimension.is_number_unsigned()) return fail("its shape is malformed");
    const uint64_t n = dimension.get<uint64_t>();
    if (__builtin_mul_overflow(size, n, &size) || n > uint64_t(INT64_MAX))
      return fail("its shape overflows");
    view.shape.push_back(static_cast<int64_t>(n));
  }
  const uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size())
    return fail("its data (bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                ") lies outside the file's " + std::to_string(data.size()) + " data bytes");
  if (end - begin != size)
    return fail("its shape needs " + std::to_string(size) + " bytes but the header gives it " +
                std::to_string(end - begin));
  view.bytes = data.subspan(begin, size);
  return view;
}

// As in the reference reader, tensors must cover the data without gaps or overlaps, so that every
// byte has exactly one meaning.
Status check_coverage(const std::string& path, const std::map<std::string, TensorView>& tensors,
                      std::span<const uint8_t> data) {
  using Entry = std::pair<const std::string, TensorView>;
  std::vector<const Entry*> order;
  for (const Entry& entry : tensors) order.push_back(&entry);
  // Empty tensors come first: they may share the offset of the next tensor.
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    const auto &x = a->second.bytes, &y = b->second.bytes;
    return x.data() != y.data() ? x.data() < y.data() : x.size() < y.size();
  });
  const uint8_t* next = data.data();
  for (const Entry* entry : order) {
    const auto bytes = entry->second.bytes;
    if (bytes.data() != next)
      return unprocessable(
          path + ": tensor " + shortened(entry->first) + ": its data begins at byte " +
              std::to_string(bytes.data() - data.data()) + ", but the one before it ends at byte " +
              std::to_string(next - data.data()),
          path);
    next += bytes.size();
  }
  if (next != data.data() + data.size())
    return unprocessable(path + ": its " + std::to_string(data.size()) + " data bytes hold " +
                             std::to_string(data.data() + data.size() - next) +
                             " that belong to no tensor",
                         path);
  return {};
}

}  // namespace

size_t dtype_size(DType dtype) { return entry_of(dtype).size; }
const char* dtype_name(DType dtype) { return entry_of(dtype).name; }

Result<std::shared_ptr<const SafeTensors>> SafeTensors::open(const std::string& path) {
  VALORA_TRY(file, MappedFile::open(path));
  return parse(path, file->bytes(), file);
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::read(const std::string& path,
                                                             size_t max_bytes) {
  VALORA_TRY(bytes, read_file(path, max_bytes));
  return from_bytes(std::move(bytes), path);
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::from_bytes(std::string bytes,
                                                                   const std::string& path) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return parse(path, {reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}, owner);
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::parse(const std::string& path,
                                                              std::span<const uint8_t> bytes,
                                                              std::shared_ptr<const void> owner) {
  auto result = std::make_shared<SafeTensors>();
  result->path_ = path;
  result->bytes_ = bytes;
  result->owner_ = std::move(owner);
  if (bytes.size() < 8) return unprocessable(path + " is too short for a safetensors file", path);
  uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), 8);
  if (header_size > bytes.size() - 8 || header_size > kMaxHeader)
    return unprocessable(path + ": the header claims " + std::to_string(header_size) +
                             " bytes in a file of " + std::to_string(bytes.size()) +
                             " (truncated, or not a safetensors file)",
                         path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, header_size);
  auto header = parse_json(text, path + ": the header", kHeaderLimits);
  if (!header.ok() || !header->is_object())
    return unprocessable(
        header.ok() ? path + ": the header is not an object" : header.error().message, path);
  const auto data = bytes.subspan(8 + header_size);
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") continue;
    VALORA_TRY(view, read_entry(path, name, entry, data));
    result->tensors_.emplace(name, std::move(view));
  }
  VALORA_CHECK(check_coverage(path, result->tensors_, data));
  return std::shared_ptr<const SafeTensors>(std::move(result));
}

const TensorView* SafeTensors::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace valora
