#include "server/uploads/upload_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/files/write_file.h"

namespace valora::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "upload-";

bool is_upload(const fs::path& path) { return path.filename().string().starts_with(kPrefix); }

std::string new_name() {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}", kPrefix, random(), random());
}

}  // namespace

Result<std::string> UploadStore::prepare(const std::string& dir) {
  const auto refused = [&](const std::string& why) {
    return invalid(fmt::format("--adapter-upload-dir {}: {}", dir, why), "adapter-upload-dir");
  };
  std::error_code error;
  fs::create_directory(dir, error);
  const fs::path real = fs::canonical(dir, error);
  if (error) return refused(error.message());
  if (!fs::is_directory(real) || access(real.c_str(), W_OK | X_OK) != 0)
    return refused("it is not a folder that the server can write");
  for (const fs::directory_entry& entry : fs::directory_iterator(real, error))
    if (is_upload(entry.path()) && entry.path().extension() == ".part")
      fs::remove_all(entry.path(), error);
  return real.string();
}

size_t UploadStore::bytes_there() const {
  size_t bytes = 0;
  std::error_code gone;  // files removed in the meantime do not count
  for (const fs::directory_entry& folder : fs::directory_iterator(dir_, gone)) {
    if (!is_upload(folder.path()) || folder.path().extension() == ".part") continue;
    for (const fs::directory_entry& file : fs::directory_iterator(folder.path(), gone)) {
      const uintmax_t size = file.file_size(gone);
      if (!gone) bytes += size;
    }
  }
  return bytes;
}

UploadStore::~UploadStore() {
  for (const auto& [path, made] : made_)
    if (!made.loaded) remove(path);
}

void UploadStore::remove(const std::string& path) noexcept {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) spdlog::warn("{} cannot be removed: {}", path, error.message());
}

// Takes the folders that are due for removal.
std::vector<std::string> UploadStore::take_unused(const std::set<std::string>& in_use) {
  const TimePoint now = clock_.now();
  std::vector<std::string> gone;
  for (auto it = made_.begin(); it != made_.end();) {
    auto& [path, made] = *it;
    if (!made.loaded || in_use.contains(path))
      made.unused_since.reset();
    else if (!made.unused_since)
      made.unused_since = now;
    const bool goes = made.unused_since && now - *made.unused_since >= kRest;
    if (goes) gone.push_back(path);
    it = goes ? made_.erase(it) : std::next(it);
  }
  return gone;
}

Result<std::string> UploadStore::keep(std::span<const File> files,
                                      const std::set<std::string>& in_use) {
  const size_t bytes =
      std::accumulate(files.begin(), files.end(), size_t{0},
                      [](size_t sum, const File& file) { return sum + file.bytes.size(); });
  const std::string path = dir_ + "/" + new_name();
  std::vector<std::string> unused;
  {
    const std::lock_guard lock(mutex_);
    unused = take_unused(in_use);
  }
  std::ranges::for_each(unused, remove);
  {
    const std::lock_guard lock(mutex_);
    const size_t there = bytes_there() + being_written_;
    if (there + bytes > limits_.all)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("the adapter has {} bytes, and uploaded adapters {} of the {} of "
                               "--adapter-upload-total; unload some, and try again ten minutes "
                               "later",
                               bytes, there, limits_.all),
                   {}};
    being_written_ += bytes;
  }
  const Status written = write_folder(path, [&](const std::string& part) -> Status {
    for (const File& file : files)
      VALORA_CHECK(write_file(part + "/" + std::string(file.name), file.bytes));
    return {};
  });
  const std::lock_guard lock(mutex_);
  being_written_ -= bytes;
  if (!written.ok()) {
    spdlog::warn("an uploaded adapter cannot be kept: {}", written.error().message);
    return Error{ErrorCode::kUnavailable, "the server cannot write the adapter", {}};
  }
  made_.emplace(path, Made());
  return path;
}

void UploadStore::loaded(const std::string& path) noexcept {
  const std::lock_guard lock(mutex_);
  if (const auto it = made_.find(path); it != made_.end()) it->second.loaded = true;
}

void UploadStore::discard(const std::string& path) noexcept {
  remove(path);
  const std::lock_guard lock(mutex_);
  made_.erase(path);
}

}  // namespace valora::server
