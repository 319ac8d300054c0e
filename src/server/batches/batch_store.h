// The folder of --batches-dir: uploaded files, batches and their answers, all of which survive the
// process (docs/batches.md). Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/folder_lock.h"
#include "base/result.h"
#include "server/batches/batch_records.h"

namespace valora::server {

struct BatchLimits {
  size_t file_bytes = size_t{200} << 20;   // of one uploaded file
  size_t storage_bytes = size_t{8} << 30;  // of all files of one user
  size_t rows = 50'000;                    // of a batch
  int batches = 20;                        // of one user that have not ended
  int in_flight = 48;                      // rows of all batches together
};

// All batches together.
struct BatchTally {
  std::map<BatchStatus, size_t> by_status;
  size_t rows_left = 0;  // of batches that have not ended: without an answer, in flight or not
};

class BatchStore {
 public:
  // Ended batches of a user beyond this number are forgotten, the oldest first; their files stay.
  static constexpr size_t kKeptBatches = 1000;

  // Creates the folder if its parent exists, takes it for this process, and reads it. What an
  // upload left without a record is removed. Errors: kConflict if another process has it;
  // kInvalidArgument if it cannot be made, or a record in it is broken.
  static Result<std::unique_ptr<BatchStore>> open(const std::string& dir,
                                                  const BatchLimits& limits);

  const BatchLimits& limits() const { return limits_; }

  // kUnavailable: the user's storage or the disk is full; nothing is kept then.
  Result<FileRecord> add_file(const std::string& owner, const std::string& filename,
                              std::string_view bytes);
  std::optional<FileRecord> file(std::string_view id) const;
  std::vector<FileRecord> files() const;  // the oldest first
  // kConflict: a batch that has not ended reads it.
  Status remove_file(const std::string& id);
  std::string content_path(std::string_view id) const;

  // kQueueFull: the user has as many batches as may be.
  Result<BatchRecord> add_batch(BatchRecord batch);
  std::optional<BatchRecord> batch(std::string_view id) const;
  std::vector<BatchRecord> batches() const;  // the oldest first
  BatchTally tally() const;
  // Changes a batch and keeps that; if it cannot be kept, nothing changes.
  Status change(const std::string& id, const std::function<void(BatchRecord&)>& change);
  // Changes a batch in memory: what a restart finds anew.
  void count(const std::string& id, size_t total, size_t completed, size_t failed);
  // Makes the file that a batch has written one of its owner's, once.
  Status publish(const std::string& file_id, const BatchRecord& batch, std::string_view filename);

 private:
  BatchStore(std::string dir, const BatchLimits& limits, FolderLock lock)
      : dir_(std::move(dir)), limits_(limits), lock_(std::move(lock)) {}

  Status read();
  Status read_files();
  Status read_batches();
  void remove_orphans();
  Status keep(const FileRecord& file);
  Status keep(const BatchRecord& batch);
  std::string file_record_path(std::string_view id) const;
  std::string batch_record_path(std::string_view id) const;
  void forget_old(const std::string& owner);

  const std::string dir_;
  const BatchLimits limits_;
  const FolderLock lock_;
  mutable std::mutex mutex_;
  std::map<std::string, FileRecord, std::less<>> files_;
  std::map<std::string, BatchRecord, std::less<>> batches_;
  std::map<std::string, size_t> being_written_;  // bytes of uploads, by owner
};

}  // namespace valora::server
