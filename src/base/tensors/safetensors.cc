#include "base/tensors/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "base/files/lfs_pointer.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace valora {
namespace {

constexpr uint64_t kMaxHeader = 100u << 20;  // the reference reader's limit
constexpr size_t kMaxDimensions = 8;
// About ten JSON values per tensor: enough for 100,000 tensors.
constexpr JsonLimits kHeaderLimits{
    .max_bytes = kMaxHeader, .max_depth = 4, .max_values = size_t{1} << 20, .unique_keys = true};

struct DTypeEntry {
  const char* name;
  DType dtype;
  size_t size;
};
constexpr std::array<DTypeEntry, 11> kDTypes{{{"F64", DType::kF64, 8},
                                              {"F32", DType::kF32, 4},
                                              {"F16", DType::kF16, 2},
                                              {"BF16", DType::kBF16, 2},
                                              {"I64", DType::kI64, 8},
                                              {"I32", DType::kI32, 4},
                                              {"I16", DType::kI16, 2},
                                              {"I8", DType::kI8, 1},
                                              {"U8", DType::kU8, 1},
                                              {"BOOL", DType::kBool, 1},
                                              {"F8_E4M3", DType::kF8E4M3, 1}}};

const DTypeEntry& entry_of(DType dtype) {
  return *std::find_if(kDTypes.begin(), kDTypes.end(),
                       [&](const auto& e) { return e.dtype == dtype; });
}

// A tensor without its bytes, and their range in the file's data.
struct Entry {
  TensorView view;
  uint64_t begin = 0, end = 0;
};
using Entries = std::map<std::string, Entry>;

Result<Entry> read_entry(const std::string& path, const std::string& name, const Json& entry,
                         uint64_t data_size) {
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
  if (begin > end || end > data_size)
    return fail("its data (bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                ") lies outside the file's " + std::to_string(data_size) + " data bytes");
  if (end - begin != size)
    return fail("its shape needs " + std::to_string(size) + " bytes but the header gives it " +
                std::to_string(end - begin));
  return Entry{std::move(view), begin, end};
}

// As in the reference reader, tensors must cover the data without gaps or overlaps, so that every
// byte has exactly one meaning.
Status check_coverage(const std::string& path, const Entries& entries, uint64_t data_size) {
  std::vector<const Entries::value_type*> order;
  for (const auto& entry : entries) order.push_back(&entry);
  // Empty tensors come first: they may share the offset of the next tensor.
  std::ranges::sort(order, {}, [](const auto* entry) {
    return std::pair(entry->second.begin, entry->second.end);
  });
  uint64_t next = 0;
  for (const auto* entry : order) {
    const auto& [view, begin, end] = entry->second;
    if (begin != next)
      return unprocessable(path + ": tensor " + shortened(entry->first) +
                               ": its data begins at byte " + std::to_string(begin) +
                               ", but the one before it ends at byte " + std::to_string(next),
                           path);
    next = end;
  }
  if (next != data_size)
    return unprocessable(path + ": its " + std::to_string(data_size) + " data bytes hold " +
                             std::to_string(data_size - next) + " that belong to no tensor",
                         path);
  return {};
}

// The header length in the file's first 8 bytes.
Result<uint64_t> header_size(const std::string& path, std::span<const char> begin,
                             uint64_t file_size) {
  if (is_lfs_pointer({begin.data(), std::min<size_t>(begin.size(), 64)})) return lfs_pointer(path);
  if (begin.size() < 8 || file_size < 8)
    return unprocessable(path + " is too short for a safetensors file", path);
  uint64_t size = 0;
  std::memcpy(&size, begin.data(), 8);
  if (size > file_size - 8 || size > kMaxHeader)
    return unprocessable(path + ": the header claims " + std::to_string(size) +
                             " bytes in a file of " + std::to_string(file_size) +
                             " (truncated, or not a safetensors file)",
                         path);
  return size;
}

Result<Entries> read_header(const std::string& path, std::string_view text, uint64_t data_size) {
  auto header = parse_json(text, path + ": the header", kHeaderLimits);
  if (!header.ok() || !header->is_object())
    return unprocessable(
        header.ok() ? path + ": the header is not an object" : header.error().message, path);
  Entries entries;
  for (const auto& [name, json] : header->items()) {
    if (name == "__metadata__") continue;
    VALORA_TRY(entry, read_entry(path, name, json, data_size));
    entries.emplace(name, std::move(entry));
  }
  VALORA_CHECK(check_coverage(path, entries, data_size));
  return entries;
}

// Caches recently parsed headers: thousands of adapters often share one.
class HeaderMemo {
 public:
  std::shared_ptr<const Entries> find(const Digest& text, uint64_t data_size) {
    const std::lock_guard lock(mutex_);
    for (const Memo& memo : memos_)
      if (memo.text == text && memo.data_size == data_size) return memo.entries;
    return nullptr;
  }
  void add(const Digest& text, uint64_t data_size, std::shared_ptr<const Entries> entries) {
    const std::lock_guard lock(mutex_);
    memos_.push_back({text, data_size, std::move(entries)});
    if (memos_.size() > kMemos) memos_.pop_front();
  }

 private:
  static constexpr size_t kMemos = 8;
  struct Memo {
    Digest text;
    uint64_t data_size;
    std::shared_ptr<const Entries> entries;
  };
  std::mutex mutex_;
  std::deque<Memo> memos_;
};

Result<Entries> read_known_header(const std::string& path, std::string_view text,
                                  uint64_t data_size) {
  constexpr size_t kLargest = size_t{1} << 20;  // bytes of a header worth caching
  static HeaderMemo memo;
  const Digest digest = digest_of(text);
  if (const auto known = memo.find(digest, data_size)) return *known;
  VALORA_TRY(entries, read_header(path, text, data_size));
  if (text.size() <= kLargest)
    memo.add(digest, data_size, std::make_shared<const Entries>(entries));
  return entries;
}

// Fills `out`; an error if the file was truncated since it was opened.
Status read_all(const InputFile& file, uint64_t begin, std::span<char> out) {
  VALORA_TRY(size, file.read(begin, out));
  if (size == out.size()) return {};
  return unprocessable(file.path() + " became shorter while it was read", file.path());
}

struct FileHeader {
  uint64_t data_begin = 0;
  Entries entries;
};

Result<FileHeader> read_file_header(const InputFile& file) {
  std::array<char, 8> begin{};
  VALORA_TRY(begin_size, file.read(0, begin));
  VALORA_TRY(size, header_size(file.path(), std::span(begin).first(begin_size), file.size()));
  std::string text(size, '\0');
  VALORA_CHECK(read_all(file, 8, text));
  VALORA_TRY(entries, read_known_header(file.path(), text, file.size() - 8 - size));
  return FileHeader{8 + size, std::move(entries)};
}

// Where tensors begin in a file, by name.
using Begins = std::vector<std::pair<std::string, uint64_t>>;

Begins begins_of(const FileHeader& header) {
  Begins begins;
  begins.reserve(header.entries.size());
  for (const auto& [name, entry] : header.entries)
    begins.emplace_back(name, header.data_begin + entry.begin);
  return begins;
}

// Where the tensors of files in use begin, by the files' identities: a header is not read again for
// each of its tensors.
class BeginsInUse {
 public:
  void add(const FileIdentity& file, const std::shared_ptr<const Begins>& begins) {
    const std::lock_guard lock(mutex_);
    if (begins_.size() >= sweep_at_) {
      std::erase_if(begins_, [](const auto& known) { return known.second.expired(); });
      sweep_at_ = 2 * begins_.size() + 64;
    }
    begins_[key_of(file)] = begins;
  }
  Result<std::shared_ptr<const Begins>> of(const InputFile& file) {
    {
      const std::lock_guard lock(mutex_);
      const auto known = begins_.find(key_of(file.identity()));
      if (known != begins_.end())
        if (auto begins = known->second.lock()) return begins;
    }
    VALORA_TRY(header, read_file_header(file));
    return std::make_shared<const Begins>(begins_of(header));
  }

 private:
  using Key = std::tuple<uint64_t, uint64_t, uint64_t, int64_t>;
  static Key key_of(const FileIdentity& file) {
    return {file.device, file.inode, file.size, file.modified_ns};
  }

  std::mutex mutex_;
  std::map<Key, std::weak_ptr<const Begins>> begins_;
  size_t sweep_at_ = 64;
};

BeginsInUse& begins_in_use() {
  static BeginsInUse begins;
  return begins;
}

// What a file that was read keeps.
struct ReadFile {
  std::shared_ptr<const uint8_t[]> values;  // of the chosen tensors
  std::shared_ptr<const Begins> begins;
};

// Reads the values of some tensors, sorted by offset, into one buffer. Adjacent tensors are read
// together.
Result<std::shared_ptr<const uint8_t[]>> read_values(const InputFile& file, uint64_t data_begin,
                                                     std::span<Entry* const> entries) {
  size_t bytes = 0;
  for (const Entry* entry : entries) bytes += entry->end - entry->begin;
  const auto values = std::make_shared_for_overwrite<uint8_t[]>(bytes);
  size_t done = 0, pending = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    Entry& entry = *entries[i];
    const size_t size = entry.end - entry.begin;
    entry.view.bytes = {values.get() + done + pending, size};
    pending += size;
    if (i + 1 < entries.size() && entries[i + 1]->begin == entry.end) continue;
    const std::span out(reinterpret_cast<char*>(values.get()) + done, pending);
    VALORA_CHECK(read_all(file, data_begin + entry.end - pending, out));
    done += std::exchange(pending, 0);
  }
  return std::shared_ptr<const uint8_t[]>(values);
}

}  // namespace

size_t dtype_size(DType dtype) { return entry_of(dtype).size; }
const char* dtype_name(DType dtype) { return entry_of(dtype).name; }

size_t byte_size(const TensorView& tensor) {
  size_t size = dtype_size(tensor.dtype);
  for (const int64_t dimension : tensor.shape) size *= static_cast<size_t>(dimension);
  return size;
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::open(const std::string& path) {
  VALORA_TRY(file, MappedFile::open(path));
  return parse(path, file->bytes(), file);
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::read(const std::string& path,
                                                             size_t max_bytes) {
  return read(path, max_bytes, [](const std::string&) { return true; });
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::read(
    const std::string& path, size_t max_bytes,
    const std::function<bool(const std::string& name)>& wanted) {
  VALORA_TRY(file, InputFile::open(path, max_bytes));
  return read(file, wanted);
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::read(
    const InputFile& file, const std::function<bool(const std::string& name)>& wanted) {
  VALORA_TRY(header, read_file_header(file));
  auto& [data_begin, entries] = header;
  std::vector<Entry*> chosen;
  for (auto& [name, entry] : entries)
    if (wanted(name)) chosen.push_back(&entry);
  std::ranges::sort(chosen, {}, &Entry::begin);
  auto result = std::make_shared<SafeTensors>();
  VALORA_TRY(values, read_values(file, data_begin, chosen));
  result->path_ = file.path();
  result->identity_ = file.identity();
  std::shared_ptr<const Begins> begins;  // of a file whose other tensors may be visited
  if (chosen.size() < entries.size()) {
    begins = std::make_shared<const Begins>(begins_of(header));
    begins_in_use().add(file.identity(), begins);
  }
  result->owner_ = std::make_shared<const ReadFile>(ReadFile{std::move(values), std::move(begins)});
  for (auto& [name, entry] : entries) result->tensors_.emplace(name, std::move(entry.view));
  return std::shared_ptr<const SafeTensors>(std::move(result));
}

Status visit_pieces(const SafeTensors& file, const std::string& tensor, const PieceVisitor& visit) {
  constexpr uint64_t kPieceBytes = 1 << 20;
  VALORA_TRY(input, InputFile::open(file.path()));
  const FileIdentity &now = input.identity(), &then = file.identity();
  if (now.device != then.device || now.inode != then.inode || now.size != then.size ||
      now.modified_ns != then.modified_ns)
    return Error{ErrorCode::kConflict, file.path() + " was changed while it was read", file.path()};
  VALORA_TRY(begins, begins_in_use().of(input));
  const auto place = std::ranges::lower_bound(*begins, tensor, {}, &Begins::value_type::first);
  const TensorView* const view = file.find(tensor);
  if (place == begins->end() || place->first != tensor || view == nullptr)
    return Error{ErrorCode::kConflict, file.path() + " was changed while it was read", file.path()};
  const uint64_t begin = place->second, end = begin + byte_size(*view);
  const size_t value_size = dtype_size(view->dtype);
  std::vector<uint8_t> bytes(std::min(kPieceBytes, end - begin));
  for (uint64_t at = begin; at < end;) {
    const std::span piece(bytes.data(), std::min<uint64_t>(bytes.size(), end - at));
    VALORA_CHECK(read_all(input, at, {reinterpret_cast<char*>(piece.data()), piece.size()}));
    const auto count = static_cast<int64_t>(piece.size() / value_size);
    VALORA_CHECK(visit((at - begin) / value_size, {view->dtype, {count}, piece}));
    at += piece.size();
  }
  return {};
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::from_bytes(std::string bytes,
                                                                   const std::string& path) {
  const auto owner = std::make_shared<const std::string>(std::move(bytes));
  return parse(path, {reinterpret_cast<const uint8_t*>(owner->data()), owner->size()}, owner);
}

std::shared_ptr<const SafeTensors> SafeTensors::changed(const SafeTensors& file,
                                                        std::map<std::string, TensorView> tensors,
                                                        std::shared_ptr<const void> owner) {
  auto made = std::make_shared<SafeTensors>();
  made->path_ = file.path_;
  made->identity_ = file.identity_;
  made->owner_ = std::move(owner);
  made->tensors_ = std::move(tensors);
  return made;
}

Result<std::shared_ptr<const SafeTensors>> SafeTensors::parse(const std::string& path,
                                                              std::span<const uint8_t> bytes,
                                                              std::shared_ptr<const void> owner) {
  auto result = std::make_shared<SafeTensors>();
  result->path_ = path;
  result->bytes_ = bytes;
  result->owner_ = std::move(owner);
  const std::span text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  VALORA_TRY(size, header_size(path, text, text.size()));
  const auto data = bytes.subspan(8 + size);
  VALORA_TRY(entries, read_header(path, {text.data() + 8, size}, data.size()));
  for (auto& [name, entry] : entries) {
    entry.view.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    result->tensors_.emplace(name, std::move(entry.view));
  }
  return std::shared_ptr<const SafeTensors>(std::move(result));
}

const TensorView* SafeTensors::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace valora
