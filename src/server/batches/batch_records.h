// Files and batches as records: what the API shows of them, and what the disk keeps.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"
#include "base/result.h"
#include "server/batches/batch_lines.h"

namespace valora::server {

struct FileRecord {
  std::string id;
  std::string owner;  // the user's name; empty: whoever has no user
  std::string filename;
  std::string purpose;  // "batch" or "batch_output"
  uint64_t bytes = 0;
  int64_t created_at = 0;  // Unix time
};

enum class BatchStatus : uint8_t {
  kValidating,
  kFailed,  // its input is not valid
  kInProgress,
  kFinalizing,
  kCompleted,
  kExpired,
  kCancelling,
  kCancelled
};
inline constexpr std::array kBatchStatuses = {BatchStatus::kValidating, BatchStatus::kFailed,
                                              BatchStatus::kInProgress, BatchStatus::kFinalizing,
                                              BatchStatus::kCompleted,  BatchStatus::kExpired,
                                              BatchStatus::kCancelling, BatchStatus::kCancelled};
std::string_view batch_status_name(BatchStatus status);
// No row is asked any more, and its files do not change.
bool has_ended(BatchStatus status);

struct BatchRecord {
  std::string id;
  std::string owner;
  std::string endpoint;
  std::string input_file_id;
  std::string completion_window;  // as sent
  OrderedJson metadata;           // an object or null
  BatchStatus status = BatchStatus::kValidating;
  int64_t created_at = 0;
  int64_t expires_at = 0;
  std::map<std::string, int64_t> times;  // "in_progress_at" and so on, as far as they came
  std::vector<LineFault> faults;
  // The files that it writes; shown once they are whole and not empty.
  std::string output_id, error_id;
  bool has_output = false, has_errors = false;
  size_t total = 0, completed = 0, failed = 0;  // rows
};

// The objects of OpenAI's API.
OrderedJson file_json(const FileRecord& file);
OrderedJson batch_json(const BatchRecord& batch);

// The objects on disk: those above with what the API does not show.
std::string stored_text(const FileRecord& file);
std::string stored_text(const BatchRecord& batch);
Result<FileRecord> read_file_record(const std::string& path);
Result<BatchRecord> read_batch_record(const std::string& path);

// "24h": a number and s, m, h or d, from a second to 30 days. kInvalidArgument for others.
Result<int64_t> window_seconds(const std::string& window);

// "file-…": ids of later calls are greater, so their order is that of their creation.
std::string new_record_id(std::string_view prefix);

}  // namespace valora::server
