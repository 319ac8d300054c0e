#include "server/batches/batch_store.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <set>

#include "base/files/write_file.h"

namespace valora::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRecordEnding = ".json";

// Errors of writing name paths of the server; clients get this one.
Error not_kept(const std::string& what, const Error& error) {
  spdlog::error("--batches-dir: {}", error.message);
  return {ErrorCode::kUnavailable,
          fmt::format("the server cannot keep the {}: its disk is full or cannot be written", what),
          {}};
}

std::vector<fs::path> entries_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

}  // namespace

Result<std::unique_ptr<BatchStore>> BatchStore::open(const std::string& dir,
                                                     const BatchLimits& limits) {
  const auto refused = [&](const std::string& why) {
    return invalid(fmt::format("--batches-dir {}: {}", dir, why), "batches-dir");
  };
  std::error_code error;
  fs::create_directory(dir, error);
  const fs::path real = fs::canonical(dir, error);
  if (error) return refused(error.message());
  for (const char* inner : {"files", "batches"})
    if (fs::create_directory(real / inner, error); error) return refused(error.message());
  if (access(real.c_str(), W_OK | X_OK) != 0) return refused("the server cannot write it");
  auto lock = FolderLock::take(real.string());
  if (!lock.ok())
    return Error{lock.error().code, fmt::format("--batches-dir {}: another server has it", dir),
                 "batches-dir"};
  std::unique_ptr<BatchStore> store(new BatchStore(real.string(), limits, std::move(*lock)));
  if (const Status read = store->read(); !read.ok()) return refused(read.error().message);
  return store;
}

Status BatchStore::read() {
  VALORA_CHECK(read_files());
  VALORA_CHECK(read_batches());
  remove_orphans();
  return {};
}

Status BatchStore::read_files() {
  for (const fs::path& path : entries_in(dir_ + "/files")) {
    if (path.extension() != kRecordEnding) continue;
    VALORA_TRY(file, read_file_record(path.string()));
    if (file.id != path.stem().string()) return invalid(path.string() + " has another id");
    if (!fs::exists(content_path(file.id))) {  // its removal was cut short
      std::error_code ignored;
      fs::remove(path, ignored);
      continue;
    }
    files_.emplace(file.id, std::move(file));
  }
  return {};
}

Status BatchStore::read_batches() {
  for (const fs::path& path : entries_in(dir_ + "/batches")) {
    if (path.extension() != kRecordEnding) continue;
    VALORA_TRY(batch, read_batch_record(path.string()));
    if (batch.id != path.stem().string()) return invalid(path.string() + " has another id");
    batches_.emplace(batch.id, std::move(batch));
  }
  return {};
}

// Removes contents without a record, but those that batches write, and parts of records.
void BatchStore::remove_orphans() {
  std::set<std::string> written;
  for (const auto& [id, batch] : batches_)
    if (!has_ended(batch.status)) written.insert({batch.output_id, batch.error_id});
  for (const fs::path& path : entries_in(dir_ + "/files")) {
    const std::string name = path.filename().string();
    if (path.extension() == kRecordEnding || files_.contains(name) || written.contains(name))
      continue;
    std::error_code ignored;
    fs::remove(path, ignored);
  }
}

std::string BatchStore::content_path(std::string_view id) const {
  return fmt::format("{}/files/{}", dir_, id);
}
std::string BatchStore::file_record_path(std::string_view id) const {
  return fmt::format("{}/files/{}{}", dir_, id, kRecordEnding);
}
std::string BatchStore::batch_record_path(std::string_view id) const {
  return fmt::format("{}/batches/{}{}", dir_, id, kRecordEnding);
}

Status BatchStore::keep(const FileRecord& file) {
  return write_file(file_record_path(file.id), stored_text(file));
}
Status BatchStore::keep(const BatchRecord& batch) {
  return write_file(batch_record_path(batch.id), stored_text(batch));
}

Result<FileRecord> BatchStore::add_file(const std::string& owner, const std::string& filename,
                                        std::string_view bytes) {
  const FileRecord file{new_record_id("file-"), owner, filename, "batch", bytes.size(),
                        std::time(nullptr)};
  {
    const std::lock_guard lock(mutex_);
    size_t there = being_written_[owner];
    for (const auto& [id, other] : files_)
      if (other.owner == owner) there += other.bytes;
    if (there + bytes.size() > limits_.storage_bytes)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("the file has {} bytes, and your files have {} of the {} of "
                               "--batch-storage; delete some",
                               bytes.size(), there, limits_.storage_bytes),
                   {}};
    being_written_[owner] += bytes.size();
  }
  // The record comes last: content without one is no file.
  Status kept = write_file(content_path(file.id), bytes);
  if (kept.ok()) kept = keep(file);
  const std::lock_guard lock(mutex_);
  being_written_[owner] -= bytes.size();
  if (!kept.ok()) {
    std::error_code ignored;
    fs::remove(content_path(file.id), ignored);
    return not_kept("file", kept.error());
  }
  files_.emplace(file.id, file);
  return file;
}

std::optional<FileRecord> BatchStore::file(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<FileRecord> BatchStore::files() const {
  const std::lock_guard lock(mutex_);
  std::vector<FileRecord> out;
  for (const auto& [id, file] : files_) out.push_back(file);
  return out;
}

Status BatchStore::remove_file(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [batch_id, batch] : batches_)
    if (!has_ended(batch.status) &&
        (batch.input_file_id == id || batch.output_id == id || batch.error_id == id))
      return Error{
          ErrorCode::kConflict,
          fmt::format("the file is one of {}, which has not ended; cancel that first", batch_id),
          {}};
  files_.erase(id);
  std::error_code error;
  fs::remove(file_record_path(id), error);
  if (!error) fs::remove(content_path(id), error);
  if (error) spdlog::warn("--batches-dir: {} cannot be removed: {}", id, error.message());
  return {};
}

Result<BatchRecord> BatchStore::add_batch(BatchRecord batch) {
  batch.id = new_record_id("batch_");
  batch.output_id = new_record_id("file-");
  batch.error_id = new_record_id("file-");
  const std::lock_guard lock(mutex_);
  const auto unfinished = std::ranges::count_if(batches_, [&](const auto& entry) {
    return entry.second.owner == batch.owner && !has_ended(entry.second.status);
  });
  if (unfinished >= limits_.batches)
    return Error{ErrorCode::kQueueFull,
                 fmt::format("{} batches have not ended, and as many may be; cancel one or wait",
                             unfinished),
                 {}};
  if (!files_.contains(batch.input_file_id))
    return not_found("the input file was deleted", "input_file_id");
  if (const Status kept = keep(batch); !kept.ok()) return not_kept("batch", kept.error());
  batches_.emplace(batch.id, batch);
  forget_old(batch.owner);
  return batch;
}

void BatchStore::forget_old(const std::string& owner) {
  std::vector<std::string> ended;
  for (const auto& [id, batch] : batches_)
    if (batch.owner == owner && has_ended(batch.status)) ended.push_back(id);
  for (size_t i = 0; i + kKeptBatches < ended.size(); ++i) {
    batches_.erase(ended[i]);
    std::error_code ignored;
    fs::remove(batch_record_path(ended[i]), ignored);
  }
}

std::optional<BatchRecord> BatchStore::batch(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  return found == batches_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<BatchRecord> BatchStore::batches() const {
  const std::lock_guard lock(mutex_);
  std::vector<BatchRecord> out;
  for (const auto& [id, batch] : batches_) out.push_back(batch);
  return out;
}

BatchTally BatchStore::tally() const {
  const std::lock_guard lock(mutex_);
  BatchTally out;
  for (const auto& [id, batch] : batches_) {
    ++out.by_status[batch.status];
    const size_t done = batch.completed + batch.failed;
    if (!has_ended(batch.status) && done < batch.total) out.rows_left += batch.total - done;
  }
  return out;
}

Status BatchStore::change(const std::string& id, const std::function<void(BatchRecord&)>& change) {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end()) return not_found("the batch is gone");
  BatchRecord changed = found->second;
  change(changed);
  if (const Status kept = keep(changed); !kept.ok()) return not_kept("batch", kept.error());
  found->second = std::move(changed);
  return {};
}

void BatchStore::count(const std::string& id, size_t total, size_t completed, size_t failed) {
  const std::lock_guard lock(mutex_);
  const auto found = batches_.find(id);
  if (found == batches_.end()) return;
  found->second.total = total;
  found->second.completed = completed;
  found->second.failed = failed;
}

Status BatchStore::publish(const std::string& file_id, const BatchRecord& batch,
                           std::string_view filename) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(content_path(file_id), error);
  if (error) return internal("the answers of " + batch.id + " are gone: " + error.message());
  const FileRecord file{file_id,        batch.owner, std::string(filename),
                        "batch_output", bytes,       std::time(nullptr)};
  const std::lock_guard lock(mutex_);
  if (files_.contains(file_id)) return {};
  if (const Status kept = keep(file); !kept.ok()) return not_kept("file", kept.error());
  files_.emplace(file_id, file);
  return {};
}

}  // namespace valora::server
