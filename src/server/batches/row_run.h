// Asks the rows of one input, a bounded number at once, and writes their answers in groups.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "server/batches/row_thread.h"
#include "server/http/http.h"
#include "server/http/inner_exchange.h"

namespace valora::server {

// A row to ask: `name` tells it from the others.
struct Row {
  std::string name;
  HttpRequest request;
};

struct AnsweredRow {
  std::string name;
  std::string request_id;
  HttpResponse response;
};

// Answers a request over the exchange, as to a client.
using AskRow = std::function<void(HttpRequest, std::shared_ptr<Exchange>)>;

struct RowRunParts {
  size_t count = 0;  // rows to ask
  // The row of this number; called again if it is to be asked again.
  std::function<Result<Row>(size_t)> row;
  // Writes answers so that they stay. Its error ends the run; the answers are then asked again by
  // a later run.
  std::function<Status(const std::vector<AnsweredRow>&)> write;
  AskRow ask;
  std::function<int()> most_in_flight;    // at least 1
  size_t most_bytes = size_t{256} << 20;  // of the bodies in flight, unless it is one row
  // At this time the rows in flight are left; absent: never.
  std::optional<std::chrono::system_clock::time_point> deadline = {};
  std::atomic<int64_t>* in_flight = nullptr;  // counts the rows in flight, if given
};

// A row whose answer is 429 (a limit of the server, the user or the application) is asked again
// until it is another one; after 503 it is asked again a few times.
class RowRun {
 public:
  RowRun(RowRunParts parts, std::shared_ptr<RowThread::Queue> queue)
      : parts_(std::move(parts)), queue_(std::move(queue)) {}
  RowRun(const RowRun&) = delete;
  RowRun& operator=(const RowRun&) = delete;

  // Returns when all rows are written, or the run was ended. Called once.
  Status run();
  // Asks no more rows; those in flight are waited for, or left. Thread-safe.
  void finish();
  void leave();

 private:
  struct Uncount {
    void operator()(std::atomic<int64_t>* count) const { --*count; }
  };
  struct Flight {
    std::string name, request_id;
    size_t bytes = 0;
    int attempts = 0;
    std::weak_ptr<InnerExchange> exchange;
    std::unique_ptr<std::atomic<int64_t>, Uncount> counted;
  };
  struct Ended {
    size_t index;
    std::optional<HttpResponse> response;
  };
  struct Repeat {
    size_t index;
    int attempts;
    std::chrono::steady_clock::time_point due;
  };

  enum class Ending { kNo, kFinish, kLeave };

  Status fill();
  std::optional<Repeat> next_row();
  void ask(const Repeat& row, Row asked);
  bool has_room(size_t bytes) const;
  // For ended rows, or another ending than the one that was seen.
  std::vector<Ended> wait(Ending seen);
  std::vector<AnsweredRow> take_answers(std::vector<Ended> ended);
  void leave_flights();
  void end_with(Ending ending);
  Ending ending();

  const RowRunParts parts_;
  const std::shared_ptr<RowThread::Queue> queue_;

  // Of the thread that runs.
  size_t next_ = 0;
  std::deque<Repeat> repeats_;
  std::unordered_map<size_t, Flight> flights_;
  size_t bytes_ = 0;
  double window_ = 1e9;  // most rows in flight by the limits that 429 and 503 told

  // Shared with the exchanges, which may end later than the run.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Ended> ended;
    Ending ending = Ending::kNo;
  };
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace valora::server
