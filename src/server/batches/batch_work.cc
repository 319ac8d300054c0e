#include "server/batches/batch_work.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <utility>

#include "server/batches/answer_rows.h"

namespace valora::server {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPauseAfterFault{2000};  // before a full disk is tried again
constexpr milliseconds kTurnPoll{500};          // a wish or the end of another batch comes at once
constexpr size_t kGivenUpAtOnce = 1000;         // rows

}  // namespace

void BatchControl::wish(Wish wish) {
  const std::lock_guard lock(mutex_);
  wish_ = std::max(wish_, wish);
  if (run_) tell(*run_);
  changed_.notify_all();
}

BatchControl::Wish BatchControl::wished() const {
  const std::lock_guard lock(mutex_);
  return wish_;
}

void BatchControl::wait_for(milliseconds time) {
  std::unique_lock lock(mutex_);
  const Wish before = wish_;
  changed_.wait_for(lock, time, [&] { return wish_ != before || woken_; });
  woken_ = false;
}

void BatchControl::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

void BatchControl::attach(RowRun* run) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  tell(*run);
}

void BatchControl::detach() {
  const std::lock_guard lock(mutex_);
  run_ = nullptr;
}

void BatchControl::tell(RowRun& run) const {
  if (wish_ == Wish::kFinish) run.finish();
  if (wish_ == Wish::kCancel || wish_ == Wish::kLeave) run.leave();
}

void BatchWork::run() {
  if (!open() || !check_input() || !begin_asking()) return;
  const Outcome outcome = ask_rows();
  if (outcome == Outcome::kStopped) return;
  if (outcome != Outcome::kDone && !give_up_rest(outcome)) return;
  finish(outcome);
}

// Again and again while the disk has no room, until it is kept (true) or the process ends.
bool BatchWork::until_kept(const std::function<Status()>& keep) {
  bool told = false;
  while (true) {
    const Status kept = keep();
    if (kept.ok()) return true;
    if (kept.error().code != ErrorCode::kUnavailable) {
      spdlog::error("{}: {}", id_, kept.error().message);
      return false;
    }
    if (!std::exchange(told, true))
      spdlog::error("{} waits until it can be written: {}", id_, kept.error().message);
    if (parts_.control.stops()) return false;
    parts_.control.wait_for(kPauseAfterFault);
  }
}

bool BatchWork::change(const std::function<void(BatchRecord&)>& change) {
  return until_kept([&] { return parts_.store.change(id_, change); });
}

bool BatchWork::fail(std::vector<LineFault> faults) {
  output_.reset();
  errors_.reset();
  std::error_code ignored;
  std::filesystem::remove(parts_.store.content_path(batch_.output_id), ignored);
  std::filesystem::remove(parts_.store.content_path(batch_.error_id), ignored);
  change([&](BatchRecord& batch) {
    batch.status = BatchStatus::kFailed;
    batch.times["failed_at"] = std::time(nullptr);
    batch.faults = std::move(faults);
  });
  return false;
}

std::optional<RowJournal> BatchWork::open_journal(const std::string& id, size_t& rows) {
  std::optional<RowJournal> opened;
  until_kept([&]() -> Status {
    rows = 0;
    VALORA_TRY(journal, RowJournal::open(parts_.store.content_path(id),
                                         [&](std::string_view row, size_t) -> Status {
                                           VALORA_TRY(custom_id, custom_id_of(row));
                                           ++rows;
                                           done_.insert(std::move(custom_id));
                                           return {};
                                         }));
    opened.emplace(std::move(journal));
    return {};
  });
  return opened;
}

bool BatchWork::open() {
  const auto batch = parts_.store.batch(id_);
  if (!batch || has_ended(batch->status)) return false;
  batch_ = *batch;
  output_ = open_journal(batch_.output_id, completed_);
  if (output_) errors_ = open_journal(batch_.error_id, failed_);
  if (parts_.control.stops()) return false;
  if (!output_ || !errors_)
    return fail({{"internal_error", "the answers that were written cannot be read", ""}});
  auto input = InputFile::open(parts_.store.content_path(batch_.input_file_id));
  if (!input.ok()) return fail({{"invalid_file", "the input file is gone", "input_file_id"}});
  input_.emplace(std::move(*input));
  return true;
}

bool BatchWork::check_input() {
  const std::lock_guard lock(parts_.validation);
  auto input = read_batch_input(*input_, batch_.endpoint, parts_.store.limits().rows,
                                [&](const std::string& id) { return is_done(id); });
  if (!input.ok()) return fail({{"invalid_file", "the input file cannot be read", ""}});
  if (!input->faults.empty()) return fail(std::move(input->faults));
  rows_ = std::move(input->rows);
  total_ = input->total;
  count(0, 0);
  return change([&](BatchRecord& batch) {
    if (batch.status == BatchStatus::kValidating) {
      batch.status = BatchStatus::kInProgress;
      batch.times["in_progress_at"] = std::time(nullptr);
    }
    batch.total = total_;
  });
}

bool BatchWork::is_expired() const { return std::chrono::system_clock::now() >= deadline(); }

bool BatchWork::begin_asking() {
  while (parts_.control.wished() == BatchControl::Wish::kNone && !is_expired() &&
         !parts_.has_turn())
    parts_.control.wait_for(kTurnPoll);
  return !parts_.control.stops();
}

BatchWork::Outcome BatchWork::why_ended() const {
  if (rows_.empty() || done_.size() >= total_) return Outcome::kDone;
  if (parts_.control.stops()) return Outcome::kStopped;
  if (parts_.control.wished() == BatchControl::Wish::kCancel) return Outcome::kCancelled;
  return is_expired() ? Outcome::kExpired : Outcome::kStopped;
}

BatchWork::Outcome BatchWork::ask_rows() {
  RowRunParts parts{.count = rows_.size(),
                    .row = [this](size_t index) -> Result<Row> {
                      VALORA_TRY(text, line_at(*input_, rows_[index]));
                      auto line = parse_batch_line(text, batch_.endpoint);
                      if (auto* fault = std::get_if<LineFault>(&line))
                        return invalid(fault->message);
                      std::string name = std::get<BatchLine>(line).custom_id;
                      return Row{std::move(name),
                                 parts_.request(std::get<BatchLine>(std::move(line)))};
                    },
                    .write = [this](const std::vector<AnsweredRow>& rows) { return write(rows); },
                    .ask = parts_.ask,
                    .most_in_flight = parts_.most_in_flight,
                    .deadline = deadline(),
                    .in_flight = &parts_.totals.in_flight};
  RowRun run(std::move(parts), parts_.queue);
  parts_.control.attach(&run);
  const Status ran = run.run();
  parts_.control.detach();
  if (!ran.ok() && !parts_.control.stops()) spdlog::error("{}: {}", id_, ran.error().message);
  return why_ended();
}

// So many more rows are written.
void BatchWork::count(size_t completed, size_t failed) {
  completed_ += completed;
  failed_ += failed;
  parts_.totals.completed += completed;
  parts_.totals.failed += failed;
  parts_.store.count(id_, total_, completed_, failed_);
}

Status BatchWork::write(const std::vector<AnsweredRow>& rows) {
  std::string answered, refused;
  size_t completed = 0;
  for (const AnsweredRow& row : rows) {
    const bool ok = row.response.status == 200;
    completed += ok ? 1 : 0;
    (ok ? answered : refused) += answer_row(row.name, row.request_id, row.response);
  }
  if (!until_kept([&] { return output_->append(answered); }) ||
      !until_kept([&] { return errors_->append(refused); }))
    return {Error{ErrorCode::kUnavailable, "its answers cannot be written", {}}};
  for (const AnsweredRow& row : rows) done_.insert(row.name);
  count(completed, rows.size() - completed);
  return {};
}

// Writes an error for each row that has no answer.
bool BatchWork::give_up_rest(Outcome outcome) {
  const bool expired = outcome == Outcome::kExpired;
  const std::string_view code = expired ? "batch_expired" : "batch_cancelled";
  const std::string_view message =
      expired ? "the completion window passed before the request was answered"
              : "the batch was cancelled before the request was answered";
  std::string text;
  size_t given_up = 0;
  const auto flush = [&] {
    if (!until_kept([&] { return errors_->append(text); })) return false;
    count(0, std::exchange(given_up, 0));
    text.clear();
    return true;
  };
  for (const LinePlace place : rows_) {
    const auto line = line_at(*input_, place);
    if (!line.ok()) continue;
    auto parsed = parse_batch_line(*line, batch_.endpoint);
    const auto* row = std::get_if<BatchLine>(&parsed);
    if (row == nullptr || is_done(row->custom_id)) continue;
    text += failure_row(row->custom_id, code, message);
    if (++given_up >= kGivenUpAtOnce && !flush()) return false;
  }
  return flush();
}

bool BatchWork::publish() {
  const bool has_output = output_->size() > 0, has_errors = errors_->size() > 0;
  output_.reset();
  errors_.reset();
  const auto keep = [&](bool has, const std::string& id, const char* kind) {
    std::error_code ignored;
    if (!has) std::filesystem::remove(parts_.store.content_path(id), ignored);
    return !has || until_kept([&] {
      return parts_.store.publish(id, batch_, fmt::format("{}_{}.jsonl", batch_.id, kind));
    });
  };
  if (!keep(has_output, batch_.output_id, "output")) return false;
  if (!keep(has_errors, batch_.error_id, "error")) return false;
  return change([&](BatchRecord& batch) {
    batch.has_output = has_output;
    batch.has_errors = has_errors;
  });
}

void BatchWork::finish(Outcome outcome) {
  // A batch that was cancelled after its last answer is cancelled all the same.
  const auto is_cancelled = [&](const BatchRecord& batch) {
    return outcome == Outcome::kCancelled || batch.status == BatchStatus::kCancelling;
  };
  const bool finalizing = change([&](BatchRecord& batch) {
    batch.total = total_;
    batch.completed = completed_;
    batch.failed = failed_;
    // time() reads a coarser clock than the deadline's, which may be a tick late.
    if (outcome == Outcome::kExpired)
      batch.times["expired_at"] = std::max<int64_t>(std::time(nullptr), batch.expires_at);
    if (is_cancelled(batch)) return;
    batch.status = BatchStatus::kFinalizing;
    batch.times.try_emplace("finalizing_at", std::time(nullptr));
  });
  if (!finalizing || !publish()) return;
  change([&](BatchRecord& batch) {
    const int64_t now = std::time(nullptr);
    if (is_cancelled(batch)) {
      batch.status = BatchStatus::kCancelled;
      batch.times["cancelled_at"] = now;
    } else if (batch.times.contains("expired_at")) {
      batch.status = BatchStatus::kExpired;
    } else {
      batch.status = BatchStatus::kCompleted;
      batch.times["completed_at"] = now;
    }
  });
}

}  // namespace valora::server
