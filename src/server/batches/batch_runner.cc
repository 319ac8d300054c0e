#include "server/batches/batch_runner.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <ctime>
#include <exception>
#include <set>
#include <utility>
#include <vector>

#include "server/openai/errors.h"

namespace valora::server {

BatchRunner::BatchRunner(BatchStore& store, AskRow ask, Identity identity)
    : store_(store), ask_(std::move(ask)), identity_(std::move(identity)) {}

BatchRunner::~BatchRunner() { stop(); }

void BatchRunner::resume() {
  for (const BatchRecord& batch : store_.batches())
    if (!has_ended(batch.status)) begin(batch);
}

void BatchRunner::begin(const BatchRecord& batch) {
  join_ended();
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  auto job = std::make_unique<Job>();
  job->id = batch.id;
  job->owner = batch.owner;
  if (batch.status == BatchStatus::kCancelling) job->control.wish(BatchControl::Wish::kCancel);
  Job& begun = *job;
  jobs_.emplace(batch.id, std::move(job));
  begun.thread = std::thread([this, &begun] { work(begun); });
}

void BatchRunner::work(Job& job) {
  try {
    BatchWork work({.store = store_,
                    .control = job.control,
                    .validation = validation_,
                    .has_turn = [this, &job] { return has_turn(job); },
                    .most_in_flight = [this] { return share(); },
                    .request = [this, owner = job.owner](
                                   BatchLine line) { return request_of(owner, std::move(line)); },
                    .ask = ask_of(job.owner),
                    .queue = thread_.queue(),
                    .totals = totals_},
                   job.id);
    work.run();
  } catch (const std::exception& e) {
    spdlog::error("{} stops until the server is started again: {}", job.id, e.what());
  }
  end(job);
}

void BatchRunner::end(Job& job) {
  const std::lock_guard lock(mutex_);
  job.ended = true;
  for (const auto& [id, other] : jobs_) other->control.wake();
}

// Threads that have ended are joined by the next begin() or stop().
void BatchRunner::join_ended() {
  std::vector<std::unique_ptr<Job>> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      if (it->second->ended) {
        ended.push_back(std::move(it->second));
        it = jobs_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& job : ended)
    if (job->thread.joinable()) job->thread.join();
}

bool BatchRunner::has_turn(const Job& job) {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, other] : jobs_)
    if (other->owner == job.owner && !other->ended &&
        other->control.wished() != BatchControl::Wish::kCancel)
      return other.get() == &job;
  return true;
}

// Owners with batches have equal parts.
int BatchRunner::share() {
  std::set<std::string_view> owners;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_)
    if (!job->ended) owners.insert(job->owner);
  return std::max(1, store_.limits().in_flight / std::max(1, static_cast<int>(owners.size())));
}

HttpRequest BatchRunner::request_of(const std::string& owner, BatchLine line) const {
  return {.method = "POST",
          .path = std::move(line.url),
          .headers = identity_(owner).value_or(Headers()),
          .body = std::move(line.body),
          .peer = "batch:0",
          .background = true};
}

AskRow BatchRunner::ask_of(const std::string& owner) const {
  return [this, owner](HttpRequest request, const std::shared_ptr<Exchange>& exchange) {
    if (!identity_(owner))
      return exchange->respond(error_response(
          403, fmt::format("the user `{}`, whose batch it is, has no key any more", owner)));
    ask_(std::move(request), exchange);
  };
}

Result<BatchRecord> BatchRunner::cancel(const std::string& id) {
  Status refused;
  const Status changed = store_.change(id, [&](BatchRecord& batch) {
    if (batch.status == BatchStatus::kCancelling) return;
    if (batch.status != BatchStatus::kValidating && batch.status != BatchStatus::kInProgress) {
      refused = Error{
          ErrorCode::kConflict,
          fmt::format("the batch is {} and cannot be cancelled", batch_status_name(batch.status)),
          {}};
      return;
    }
    batch.status = BatchStatus::kCancelling;
    batch.times["cancelling_at"] = std::time(nullptr);
  });
  if (!changed.ok()) return changed.error();
  if (!refused.ok()) return refused.error();
  {
    const std::lock_guard lock(mutex_);
    if (const auto job = jobs_.find(id); job != jobs_.end())
      job->second->control.wish(BatchControl::Wish::kCancel);
  }
  return *store_.batch(id);
}

void BatchRunner::drain() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (const auto& [id, job] : jobs_) job->control.wish(BatchControl::Wish::kFinish);
}

void BatchRunner::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const auto& [id, job] : jobs_) job->control.wish(BatchControl::Wish::kLeave);
  }
  // Their threads look at jobs_ until they end.
  for (const auto& [id, job] : jobs_)
    if (job->thread.joinable()) job->thread.join();
  const std::lock_guard lock(mutex_);
  jobs_.clear();
}

}  // namespace valora::server
