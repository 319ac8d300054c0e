#include "server/batches/batch_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <mutex>
#include <random>
#include <utility>

#include "server/openai/json_text.h"

namespace valora::server {
namespace {

constexpr std::array<std::pair<BatchStatus, std::string_view>, 8> kStatuses = {{
    {BatchStatus::kValidating, "validating"},
    {BatchStatus::kFailed, "failed"},
    {BatchStatus::kInProgress, "in_progress"},
    {BatchStatus::kFinalizing, "finalizing"},
    {BatchStatus::kCompleted, "completed"},
    {BatchStatus::kExpired, "expired"},
    {BatchStatus::kCancelling, "cancelling"},
    {BatchStatus::kCancelled, "cancelled"},
}};
constexpr std::array kTimes = {"in_progress_at", "finalizing_at", "completed_at", "failed_at",
                               "expired_at",     "cancelling_at", "cancelled_at"};

constexpr int64_t kMostWindow = int64_t{30} * 24 * 3600;

OrderedJson or_null(bool is, const std::string& text) {
  return is ? OrderedJson(text) : OrderedJson();
}

OrderedJson faults_json(const std::vector<LineFault>& faults) {
  OrderedJson data = OrderedJson::array();
  for (const LineFault& fault : faults)
    data.push_back({{"code", fault.code},
                    {"message", fault.message},
                    {"param", or_null(!fault.param.empty(), fault.param)},
                    {"line", fault.line == 0 ? OrderedJson() : OrderedJson(fault.line)}});
  return {{"object", "list"}, {"data", std::move(data)}};
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

int64_t number_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? 0 : as_integer(*found).value_or(0);
}

std::vector<LineFault> read_faults(const Json& errors) {
  std::vector<LineFault> faults;
  if (!errors.is_object() || !errors.contains("data") || !errors["data"].is_array()) return faults;
  for (const Json& fault : errors["data"])
    faults.push_back({text_at(fault, "code"), text_at(fault, "message"), text_at(fault, "param"),
                      static_cast<size_t>(number_at(fault, "line"))});
  return faults;
}

Result<BatchStatus> read_status(const std::string& name) {
  for (const auto& [status, known] : kStatuses)
    if (known == name) return status;
  return invalid("the status \"" + name + "\" is unknown");
}

void read_counts(const Json& json, BatchRecord& batch) {
  const auto counts = json.find("request_counts");
  if (counts == json.end() || !counts->is_object()) return;
  batch.total = static_cast<size_t>(number_at(*counts, "total"));
  batch.completed = static_cast<size_t>(number_at(*counts, "completed"));
  batch.failed = static_cast<size_t>(number_at(*counts, "failed"));
}

}  // namespace

std::string_view batch_status_name(BatchStatus status) {
  return std::ranges::find(kStatuses, status, &std::pair<BatchStatus, std::string_view>::first)
      ->second;
}

bool has_ended(BatchStatus status) {
  return status == BatchStatus::kFailed || status == BatchStatus::kCompleted ||
         status == BatchStatus::kExpired || status == BatchStatus::kCancelled;
}

OrderedJson file_json(const FileRecord& file) {
  return {{"id", file.id},
          {"object", "file"},
          {"bytes", file.bytes},
          {"created_at", file.created_at},
          {"filename", file.filename},
          {"purpose", file.purpose},
          {"status", "processed"},
          {"expires_at", nullptr},
          {"status_details", nullptr}};
}

OrderedJson batch_json(const BatchRecord& batch) {
  OrderedJson out = {{"id", batch.id},
                     {"object", "batch"},
                     {"endpoint", batch.endpoint},
                     {"errors", batch.faults.empty() ? OrderedJson() : faults_json(batch.faults)},
                     {"input_file_id", batch.input_file_id},
                     {"completion_window", batch.completion_window},
                     {"status", batch_status_name(batch.status)},
                     {"output_file_id", or_null(batch.has_output, batch.output_id)},
                     {"error_file_id", or_null(batch.has_errors, batch.error_id)},
                     {"created_at", batch.created_at},
                     {"expires_at", batch.expires_at}};
  for (const char* name : kTimes) {
    const auto found = batch.times.find(name);
    out[name] = found == batch.times.end() ? OrderedJson() : OrderedJson(found->second);
  }
  out["request_counts"] = {
      {"total", batch.total}, {"completed", batch.completed}, {"failed", batch.failed}};
  out["metadata"] = batch.metadata;
  return out;
}

std::string stored_text(const FileRecord& file) {
  OrderedJson out = file_json(file);
  out["owner"] = file.owner;
  return to_text(out) + "\n";
}

std::string stored_text(const BatchRecord& batch) {
  OrderedJson out = batch_json(batch);
  out["owner"] = batch.owner;
  out["output_id"] = batch.output_id;
  out["error_id"] = batch.error_id;
  return to_text(out) + "\n";
}

Result<FileRecord> read_file_record(const std::string& path) {
  VALORA_TRY(json, read_json_file(path));
  if (!json.is_object()) return invalid(path + " is not a JSON object", path);
  return FileRecord{text_at(json, "id"),
                    text_at(json, "owner"),
                    text_at(json, "filename"),
                    text_at(json, "purpose"),
                    static_cast<uint64_t>(number_at(json, "bytes")),
                    number_at(json, "created_at")};
}

Result<BatchRecord> read_batch_record(const std::string& path) {
  VALORA_TRY(json, read_json_file(path));
  if (!json.is_object()) return invalid(path + " is not a JSON object", path);
  BatchRecord batch{.id = text_at(json, "id"),
                    .owner = text_at(json, "owner"),
                    .endpoint = text_at(json, "endpoint"),
                    .input_file_id = text_at(json, "input_file_id"),
                    .completion_window = text_at(json, "completion_window"),
                    .created_at = number_at(json, "created_at"),
                    .expires_at = number_at(json, "expires_at"),
                    .output_id = text_at(json, "output_id"),
                    .error_id = text_at(json, "error_id"),
                    .has_output = !text_at(json, "output_file_id").empty(),
                    .has_errors = !text_at(json, "error_file_id").empty()};
  VALORA_TRY(status, read_status(text_at(json, "status")));
  batch.status = status;
  if (const auto metadata = json.find("metadata"); metadata != json.end())
    batch.metadata = OrderedJson::parse(metadata->dump());
  for (const char* name : kTimes)
    if (const int64_t at = number_at(json, name); at != 0) batch.times[name] = at;
  if (const auto errors = json.find("errors"); errors != json.end())
    batch.faults = read_faults(*errors);
  read_counts(json, batch);
  return batch;
}

Result<int64_t> window_seconds(const std::string& window) {
  constexpr std::array<std::pair<char, int64_t>, 4> kUnits = {
      {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}}};
  int64_t number = 0;
  const char* const last = window.data() + window.size();
  const auto [end, fault] = std::from_chars(window.data(), last, number);
  if (fault == std::errc() && end + 1 == last && number > 0 && number <= kMostWindow)
    for (const auto& [unit, seconds] : kUnits)
      if (*end == unit && number * seconds <= kMostWindow) return number * seconds;
  return invalid(
      "\"completion_window\" must be a number and s, m, h or d, such as \"24h\", of at most 30 "
      "days",
      "completion_window");
}

std::string new_record_id(std::string_view prefix) {
  static std::mutex mutex;
  static int64_t last = 0;
  thread_local std::mt19937_64 random{std::random_device{}()};
  const std::lock_guard lock(mutex);
  const int64_t now = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  last = std::max(last + 1, now);
  return fmt::format("{}{:014x}{:010x}", prefix, last, random() >> 24);
}

}  // namespace valora::server
