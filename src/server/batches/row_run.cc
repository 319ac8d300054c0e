#include "server/batches/row_run.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/fault.h"
#include "server/openai/errors.h"

namespace valora::server {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kMostUnavailable = 12;  // answers with 503 after which a row is not asked again
constexpr milliseconds kFirstPause{20}, kLongestPause{10'000};
constexpr double kGrowth = 0.1;  // of the rows in flight after each answer, once they were limited

milliseconds pause_after(int attempts) {
  return std::min(kLongestPause, kFirstPause * (1 << std::min(attempts, 10)));
}

// Another answer is to be expected later.
bool is_transient(const HttpResponse& response, int attempts) {
  return response.status == 429 || (response.status == 503 && attempts < kMostUnavailable);
}

}  // namespace

void RowRun::end_with(Ending ending) {
  const std::lock_guard lock(shared_->mutex);
  shared_->ending = std::max(shared_->ending, ending);
  shared_->changed.notify_all();
}

void RowRun::finish() { end_with(Ending::kFinish); }
void RowRun::leave() { end_with(Ending::kLeave); }

RowRun::Ending RowRun::ending() {
  if (parts_.deadline && std::chrono::system_clock::now() >= *parts_.deadline)
    end_with(Ending::kLeave);
  const std::lock_guard lock(shared_->mutex);
  return shared_->ending;
}

Status RowRun::run() {
  while (true) {
    const Ending end = ending();
    if (end == Ending::kLeave) leave_flights();
    if (end == Ending::kNo) {
      if (const Status filled = fill(); !filled.ok()) {
        leave_flights();
        return filled;
      }
    }
    const bool all_asked = end != Ending::kNo || (next_ == parts_.count && repeats_.empty());
    if (flights_.empty() && all_asked) return {};
    const std::vector<AnsweredRow> answers = take_answers(wait(end));
    if (answers.empty()) continue;
    if (const Status written = parts_.write(answers); !written.ok()) {
      leave_flights();
      return written;
    }
  }
}

bool RowRun::has_room(size_t bytes) const {
  if (flights_.empty()) return true;
  const double most = std::min<double>(parts_.most_in_flight(), window_);
  return static_cast<double>(flights_.size() + 1) <= most && bytes_ + bytes <= parts_.most_bytes;
}

std::optional<RowRun::Repeat> RowRun::next_row() {
  if (!repeats_.empty() && repeats_.front().due <= Steady::now()) {
    const Repeat row = repeats_.front();
    repeats_.pop_front();
    return row;
  }
  if (!repeats_.empty() || next_ == parts_.count) return std::nullopt;
  return Repeat{next_++, 0, {}};
}

Status RowRun::fill() {
  while (has_room(0)) {
    const auto next = next_row();
    if (!next) return {};
    VALORA_TRY(row, parts_.row(next->index));
    const size_t bytes = row.request.body.size();
    if (!has_room(bytes)) {
      repeats_.push_front({next->index, next->attempts, Steady::now()});
      return {};
    }
    ask(*next, std::move(row));
  }
  return {};
}

void RowRun::ask(const Repeat& row, Row asked) {
  const size_t index = row.index;
  const auto exchange = std::make_shared<InnerExchange>(
      [queue = queue_](std::function<void()> work) { queue->post(std::move(work)); },
      [shared = shared_, index](std::optional<HttpResponse> response) {
        const std::lock_guard lock(shared->mutex);
        shared->ended.push_back({index, std::move(response)});
        shared->changed.notify_all();
      });
  if (asked.request.id.empty()) asked.request.id = request_id_from({});
  if (parts_.in_flight) ++*parts_.in_flight;
  flights_[index] = {std::move(asked.name), asked.request.id, asked.request.body.size(),
                     row.attempts,          exchange,         {parts_.in_flight, {}}};
  bytes_ += flights_[index].bytes;
  try {
    parts_.ask(std::move(asked.request), exchange);
  } catch (const std::bad_alloc&) {
    exchange->respond(error_response(out_of_memory()));
  } catch (const std::exception&) {
    exchange->respond(error_response(500, "the server failed while it read the request"));
  }
}

std::vector<RowRun::Ended> RowRun::wait(Ending seen) {
  auto until = Steady::now() + std::chrono::seconds(1);
  if (!repeats_.empty()) until = std::min(until, repeats_.front().due);
  if (parts_.deadline)
    until =
        std::min(until, Steady::now() + std::chrono::duration_cast<Steady::duration>(
                                            *parts_.deadline - std::chrono::system_clock::now()));
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_until(lock, until,
                              [&] { return !shared_->ended.empty() || shared_->ending != seen; });
  return std::exchange(shared_->ended, {});
}

std::vector<AnsweredRow> RowRun::take_answers(std::vector<Ended> ended) {
  std::vector<AnsweredRow> answers;
  for (auto& [index, response] : ended) {
    const auto found = flights_.find(index);
    if (found == flights_.end()) continue;
    Flight flight = std::move(found->second);
    flights_.erase(found);
    bytes_ -= flight.bytes;
    if (!response && ending() != Ending::kNo) continue;
    if (!response)  // lost for lack of memory, or its engine ends
      response = error_response(503, "the request was lost for lack of memory");
    if (!is_transient(*response, flight.attempts)) {
      window_ += kGrowth;
      answers.push_back(
          {std::move(flight.name), std::move(flight.request_id), std::move(*response)});
      continue;
    }
    // As many as are in flight now were taken; when one of them ends, the next is.
    window_ = std::max<double>(1, static_cast<double>(flights_.size()));
    const bool limited = response->status == 429 && !flights_.empty();
    const int attempts = limited ? flight.attempts : flight.attempts + 1;
    repeats_.push_back(
        {index, attempts, Steady::now() + (limited ? kFirstPause : pause_after(attempts))});
  }
  std::ranges::sort(repeats_, {}, &Repeat::due);
  return answers;
}

void RowRun::leave_flights() {
  for (auto& [index, flight] : flights_)
    if (const auto exchange = flight.exchange.lock()) exchange->leave();
}

}  // namespace valora::server
