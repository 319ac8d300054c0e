#include "base/tensors/gguf.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/files/lfs_pointer.h"
#include "base/tensors/gguf_files.h"
#include "base/tensors/gguf_types.h"
#include "base/text/strings.h"
#include "base/text/unicode.h"

namespace valora {
namespace {

static_assert(std::endian::native == std::endian::little);

std::string printable(std::string_view text) { return shortened(to_valid_utf8(text), 100); }

}  // namespace

// Parses a file from its first byte to its last.
class GgufReader {
 public:
  GgufReader(const std::string& path, std::span<const uint8_t> bytes) : path_(path), all_(bytes) {}

  Status read_header() {
    const std::string_view begin(reinterpret_cast<const char*>(all_.data()),
                                 std::min<size_t>(all_.size(), 64));
    if (is_lfs_pointer(begin)) return lfs_pointer(path_);
    if (!begin.starts_with("GGUF")) return fail("is not a GGUF file");
    at_ = 4;
    VALORA_TRY(version, take<uint32_t>("the header"));
    if (version > 3 && __builtin_bswap32(version) <= 3)
      return fail("is a GGUF file in big-endian order, which is not supported");
    if (version != 2 && version != 3)
      return fail("is a GGUF file of version " + std::to_string(version) +
                  ", only 2 and 3 are supported");
    VALORA_TRY(tensors, take<uint64_t>("the header"));
    VALORA_TRY(keys, take<uint64_t>("the header"));
    tensor_count_ = tensors;
    key_count_ = keys;
    return {};
  }

  Status read_metadata(GgufMetadata& metadata) {
    constexpr size_t kLeastEntry = 8 + 4 + 1;
    if (key_count_ > left() / kLeastEntry)
      return fail("claims " + std::to_string(key_count_) + " keys of metadata in " +
                  std::to_string(left()) + " bytes (truncated?)");
    for (uint64_t i = 0; i < key_count_; ++i) {
      VALORA_TRY(key, take_text("a key of the metadata"));
      const std::string where = "\"" + printable(key) + "\"";
      VALORA_TRY(type, take<uint32_t>(where));
      VALORA_TRY(value, take_value(type, where));
      if (!metadata.values_.emplace(std::string(key), value).second)
        return fail(where + " occurs twice");
    }
    VALORA_TRY(alignment, metadata.integer("general.alignment", 32));
    constexpr int64_t kMost = 1 << 16;
    if (alignment < 1 || alignment > kMost || (alignment & (alignment - 1)) != 0)
      return metadata.wrong("general.alignment", "must be a power of two of at most 65536");
    alignment_ = static_cast<size_t>(alignment);
    return {};
  }

  Status read_tensors(std::vector<GgufTensor>& tensors, std::map<std::string, size_t>& index) {
    constexpr size_t kLeastEntry = 8 + 4 + 8 + 4 + 8;
    if (tensor_count_ > left() / kLeastEntry)
      return fail("claims " + std::to_string(tensor_count_) + " tensors in " +
                  std::to_string(left()) + " bytes (truncated?)");
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      VALORA_TRY(name, take_text("the name of a tensor"));
      if (!is_valid_utf8(name)) return fail("the name of a tensor is not UTF-8");
      GgufTensor tensor;
      tensor.name = std::string(name);
      VALORA_CHECK(read_entry(tensor, offsets));
      if (!index.emplace(tensor.name, tensors.size()).second)
        return fail("tensor " + printable(name) + " occurs twice");
      tensors.push_back(std::move(tensor));
    }
    return place(tensors, offsets);
  }

 private:
  size_t left() const { return all_.size() - at_; }
  Error fail(const std::string& why) const {
    const bool sentence = why.starts_with("is ") || why.starts_with("claims ");
    return unprocessable(path_ + (sentence ? " " : ": ") + why, path_);
  }
  Error truncated(const std::string& where) const {
    return fail(where + " ends beyond the file's " + std::to_string(all_.size()) +
                " bytes (truncated?)");
  }

  template <typename T>
  Result<T> take(const std::string& where) {
    if (left() < sizeof(T)) return truncated(where);
    const T value = gguf_load<T>(all_.data() + at_);
    at_ += sizeof(T);
    return value;
  }

  Result<std::string_view> take_text(const std::string& where) {
    VALORA_TRY(length, take<uint64_t>(where));
    if (length > left()) return truncated(where);
    const std::string_view text(reinterpret_cast<const char*>(all_.data()) + at_, length);
    at_ += length;
    return text;
  }

  Result<GgufMetadata::Value> take_value(uint32_t type, const std::string& where) {
    if (type == gguf::kList) return take_list(where);
    if (type == gguf::kText) {
      VALORA_TRY(text, take_text(where));
      return GgufMetadata::Value(text);
    }
    const size_t size = gguf_value_size(type);
    if (size == 0) return fail(where + " has the unknown type " + std::to_string(type));
    if (left() < size) return truncated(where);
    const uint8_t* const at = all_.data() + at_;
    at_ += size;
    if (type == gguf::kFlag) return GgufMetadata::Value(*at != 0);
    if (type == gguf::kF32Value || type == gguf::kF64Value)
      return GgufMetadata::Value(gguf_number(type, at));
    if (type == gguf::kU64 && gguf_load<uint64_t>(at) > INT64_MAX)
      return fail(where + " is out of range");
    if (type == gguf::kU64 || type == gguf::kI64)
      return GgufMetadata::Value(gguf_load<int64_t>(at));
    return GgufMetadata::Value(static_cast<int64_t>(gguf_number(type, at)));
  }

  Result<GgufMetadata::Value> take_list(const std::string& where) {
    GgufMetadata::Array list;
    VALORA_TRY(type, take<uint32_t>(where));
    VALORA_TRY(count, take<uint64_t>(where));
    list.type = type;
    list.count = count;
    const size_t begin = at_;
    if (type == gguf::kText) {
      for (uint64_t i = 0; i < count; ++i) VALORA_CHECK(take_text(where));
    } else {
      const size_t size = gguf_value_size(type);
      if (size == 0) return fail(where + " is a list of the type " + std::to_string(type));
      if (count > left() / size) return truncated(where);
      at_ += count * size;
    }
    list.bytes = all_.subspan(begin, at_ - begin);
    return GgufMetadata::Value(list);
  }

  // Reads the rest of a tensor's entry, after its name.
  Status read_entry(GgufTensor& tensor, std::vector<uint64_t>& offsets) {
    constexpr uint32_t kMostDimensions = 4;
    const std::string where = "tensor " + printable(tensor.name);
    VALORA_TRY(dimensions, take<uint32_t>(where));
    if (dimensions < 1 || dimensions > kMostDimensions)
      return fail(where + " has " + std::to_string(dimensions) + " dimensions");
    uint64_t count = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
      VALORA_TRY(size, take<uint64_t>(where));
      if (size > uint64_t(INT64_MAX) || __builtin_mul_overflow(count, size, &count) ||
          count > uint64_t(INT64_MAX))
        return fail(where + " has a shape that overflows");
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    VALORA_TRY(number, take<uint32_t>(where));
    const GgufTypeEntry* const type = gguf_type(number);
    if (!type) {
      const char* const name = other_gguf_type(number);
      return fail(where + " has the type " + (name ? name : std::to_string(number)) +
                  (name ? ", which is not supported" : ", which is unknown"));
    }
    tensor.type = type->type;
    const auto& [name, values, bytes] = type->block;
    if (tensor.shape.back() % values != 0)
      return fail(where + " has rows of " + std::to_string(tensor.shape.back()) +
                  " values, which blocks of " + name + " (" + std::to_string(values) +
                  ") do not divide");
    uint64_t size = 0;
    if (__builtin_mul_overflow(count / static_cast<uint64_t>(values), bytes, &size))
      return fail(where + " has a shape that overflows");
    VALORA_TRY(offset, take<uint64_t>(where));
    offsets.push_back(offset);
    sizes_.push_back(size);
    return {};
  }

  Status place(std::vector<GgufTensor>& tensors, const std::vector<uint64_t>& offsets) {
    const auto aligned = [&](uint64_t value) {
      return (value + alignment_ - 1) & ~uint64_t{alignment_ - 1};
    };
    const uint64_t data = aligned(at_);  // at_ and alignment_ are far below overflow
    uint64_t next = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string where = "tensor " + printable(tensors[i].name);
      if (offsets[i] != next)
        return fail(where + " begins at byte " + std::to_string(offsets[i]) +
                    " of the data, but the one before it ends at " + std::to_string(next));
      if (data > all_.size() || next > all_.size() - data || sizes_[i] > all_.size() - data - next)
        return truncated(where);
      tensors[i].begin = data + next;
      tensors[i].bytes = all_.subspan(data + next, sizes_[i]);
      next = aligned(next + sizes_[i]);
    }
    return {};
  }

  const std::string& path_;
  std::span<const uint8_t> all_;
  size_t at_ = 0, alignment_ = 0;
  uint64_t tensor_count_ = 0, key_count_ = 0;
  std::vector<uint64_t> sizes_;  // bytes per tensor
};

Result<std::shared_ptr<const Gguf>> Gguf::open(const std::string& path) {
  VALORA_TRY(file, MappedFile::open(path));
  VALORA_TRY(whole, parse(path, file->bytes(), file));
  VALORA_CHECK(whole->add_parts());
  return std::shared_ptr<const Gguf>(std::move(whole));
}

Result<std::shared_ptr<const Gguf>> Gguf::from_bytes(std::string bytes, const std::string& path) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  VALORA_TRY(file,
             parse(path, {reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}, owner));
  return std::shared_ptr<const Gguf>(std::move(file));
}

Result<std::shared_ptr<Gguf>> Gguf::parse(const std::string& path, std::span<const uint8_t> bytes,
                                          std::shared_ptr<const void> owner) {
  auto file = std::make_shared<Gguf>();
  file->parts_ = {path};
  file->owners_ = {std::move(owner)};
  file->metadata_ = GgufMetadata(path);
  GgufReader reader(path, bytes);
  VALORA_CHECK(reader.read_header());
  VALORA_CHECK(reader.read_metadata(file->metadata_));
  VALORA_CHECK(reader.read_tensors(file->tensors_, file->index_));
  return file;
}

Status Gguf::add_parts() {
  const std::string first = path();
  VALORA_TRY(count, metadata_.integer("split.count", 1));
  if (count <= 1) return {};
  VALORA_TRY(number, metadata_.integer("split.no", 0));
  const auto name = gguf_part_name(first);
  const auto is = [&](const std::string& what) {
    return unprocessable(first + " is " + what, first);
  };
  if (number != 0)
    return is(fmt::format("part {} of {} of a model: give the first part{}", number + 1, count,
                          name ? ", " + name->path(1) : std::string()));
  if (!name || name->number != 1 || name->count != count)
    return is(
        fmt::format("the first of {} files of a model, but its name does not end in {}, from "
                    "which the names of the others follow",
                    count, GgufPartName{"", 1, count}.path(1)));
  for (int64_t part = 2; part <= count; ++part) {
    const std::string path = name->path(part);
    if (!file_exists(path))
      return unprocessable(
          fmt::format("{} is missing, one of the {} parts of the model in {}", path, count, first),
          path);
    VALORA_TRY(file, MappedFile::open(path));
    VALORA_TRY(read, parse(path, file->bytes(), file));
    VALORA_TRY(own, read->metadata_.integer("split.no", -1));
    if (own != part - 1)
      return read->metadata_.wrong("split.no",
                                   fmt::format("must be {}, as its name says", part - 1));
    for (GgufTensor tensor : read->tensors_) {
      tensor.part = parts_.size();
      if (!index_.emplace(tensor.name, tensors_.size()).second)
        return unprocessable(
            path + ": tensor " + printable(tensor.name) + " is in another part, too", path);
      tensors_.push_back(std::move(tensor));
    }
    parts_.push_back(path);
    owners_.push_back(std::move(file));
  }
  VALORA_TRY(tensors,
             metadata_.integer("split.tensors.count", static_cast<int64_t>(tensors_.size())));
  if (tensors != static_cast<int64_t>(tensors_.size()))
    return metadata_.wrong(
        "split.tensors.count",
        fmt::format("is {}, but the parts have {} tensors", tensors, tensors_.size()));
  return {};
}

const GgufTensor* Gguf::find(const std::string& name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

}  // namespace valora
