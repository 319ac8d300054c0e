// The requests that an engine has accepted and that have not ended: its only map of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "serving/sequence.h"

namespace valora::serving {

// Thread-safe. Its mutex is held while nothing else is called, so it can be taken under any other.
class RequestTable {
 public:
  using Done = std::function<void()>;

  explicit RequestTable(int max_waiting) : max_waiting_(max_waiting) {}

  // Why no further request is accepted. The greater reason is the one told.
  enum class Closed : uint8_t { kOpen, kFailed, kShuttingDown };
  void close(Closed why);

  // Adds a request that workers are about to prepare. kUnavailable: closed. kQueueFull: as many as
  // allowed are not scheduled yet; the bound is exact.
  Status add(const std::shared_ptr<ActiveRequest>& request);
  // Undoes add() for a request that no worker has.
  void take_back(RequestHandle handle);
  // A request is prepared, and goes to the engine thread.
  void prepared();
  // A request was first scheduled, or ends before that.
  void scheduled() { --queued_; }
  void ended(RequestHandle handle);

  // Null: unknown, or ended.
  std::shared_ptr<ActiveRequest> find(RequestHandle handle) const;
  std::vector<std::shared_ptr<ActiveRequest>> all() const;
  bool empty() const;
  int preparing() const;
  // Requests that the engine thread has, or is about to get.
  size_t handed_over() const;

  // Keeps `done` until no request is left. Close the table first.
  void when_empty(Done done);
  // What when_empty() has kept, if no request is left. The caller calls it.
  std::vector<Done> take_finished_drains();
  // What when_empty() has kept, and the requests that it waits for; nothing if there is none.
  struct OpenDrains {
    std::vector<Done> done;
    std::vector<std::shared_ptr<ActiveRequest>> requests;
  };
  OpenDrains take_open_drains();

 private:
  std::vector<std::shared_ptr<ActiveRequest>> list() const;

  const int max_waiting_;
  std::atomic<int> queued_ = 0;  // not yet scheduled; incremented only under mutex_
  mutable std::mutex mutex_;     // guards what follows
  Closed closed_ = Closed::kOpen;
  int preparing_ = 0;
  std::unordered_map<RequestHandle, std::shared_ptr<ActiveRequest>> requests_;
  std::vector<Done> drains_;
};

}  // namespace valora::serving
