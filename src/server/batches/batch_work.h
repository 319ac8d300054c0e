// The work of one batch: checks its input, asks its rows, writes their answers. What it has done is
// on the disk at each moment, so that another process goes on with it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/files/file.h"
#include "server/batches/batch_store.h"
#include "server/batches/row_journal.h"
#include "server/batches/row_run.h"

namespace valora::server {

// Rows of all batches since the process began.
struct RowTotals {
  std::atomic<int64_t> in_flight{0};
  std::atomic<uint64_t> completed{0}, failed{0};
};

// Tells a batch's work what others want of it. Thread-safe.
class BatchControl {
 public:
  enum class Wish { kNone, kCancel, kFinish, kLeave };  // the later ones win

  void wish(Wish wish);
  Wish wished() const;
  // The process ends: what is not done stays for the next one.
  bool stops() const { return wished() >= Wish::kFinish; }
  // Waits for a wish or wake(), at most so long.
  void wait_for(std::chrono::milliseconds time);
  void wake();

  // The run that is told of wishes while it runs.
  void attach(RowRun* run);
  void detach();

 private:
  void tell(RowRun& run) const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Wish wish_ = Wish::kNone;
  bool woken_ = false;
  RowRun* run_ = nullptr;
};

class BatchWork {
 public:
  struct Parts {
    BatchStore& store;
    BatchControl& control;
    std::mutex& validation;                         // held while an input is read: one at a time
    std::function<bool()> has_turn;                 // whether the batch may ask its rows now
    std::function<int()> most_in_flight;            // its part of all rows
    std::function<HttpRequest(BatchLine)> request;  // a row as its owner's request
    AskRow ask;
    std::shared_ptr<RowThread::Queue> queue;
    RowTotals& totals;
  };

  BatchWork(Parts parts, std::string id) : parts_(std::move(parts)), id_(std::move(id)) {}

  // Returns when the batch has ended, or the process ends.
  void run();

 private:
  enum class Outcome { kDone, kCancelled, kExpired, kStopped };

  bool open();
  std::optional<RowJournal> open_journal(const std::string& id, size_t& rows);
  bool check_input();
  bool begin_asking();
  Outcome ask_rows();
  Outcome why_ended() const;
  Status write(const std::vector<AnsweredRow>& rows);
  bool until_kept(const std::function<Status()>& keep);
  bool give_up_rest(Outcome outcome);
  void finish(Outcome outcome);
  bool publish();
  bool fail(std::vector<LineFault> faults);
  bool change(const std::function<void(BatchRecord&)>& change);
  bool is_done(const std::string& id) const { return done_.contains(id); }
  std::chrono::system_clock::time_point deadline() const {
    return std::chrono::system_clock::from_time_t(batch_.expires_at);
  }
  bool is_expired() const;
  void count(size_t completed, size_t failed);

  const Parts parts_;
  const std::string id_;
  BatchRecord batch_;  // as it was at the start
  std::optional<InputFile> input_;
  std::optional<RowJournal> output_, errors_;
  std::unordered_set<std::string> done_;  // custom_ids of rows in either
  size_t total_ = 0, completed_ = 0, failed_ = 0;
  std::vector<LinePlace> rows_;  // that are not done
};

}  // namespace valora::server
