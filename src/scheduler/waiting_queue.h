// The waiting requests in the order in which to serve them: by priority, and fairly among tenants.
// Fairness follows virtual token counters (Sheng et al., OSDI '24), counting the time of steps
// instead of tokens: among the waiting tenants, the one with the least service relative to its
// share goes first. So a request's place depends on the service of its own tenant, not on how many
// requests others send. A tenant is charged when a request is admitted, by the typical cost of its
// requests, or it could take all places that become free at once; when the request ends, the charge
// is corrected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduler/request.h"

namespace valora::scheduler {

// Not thread-safe.
class WaitingQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  // Allocates nothing for a request that ran before: each admitted request keeps its place
  // reserved.
  void push(std::shared_ptr<Request> request);
  // The last waiting request of some tenant; null if none waits.
  Request* last() const;
  // The request must outlive the call. No effect if it is not in the queue.
  void erase(const Request& request);
  // Removes the requests that run now, which are among the first `n`.
  void erase_running(size_t n);

  // The first `n` requests, or all. Within a tenant: by priority; within a priority, preempted
  // requests by arrival, then the others in the order they came. The charge of each listed request
  // counts for the order of the next.
  std::vector<Request*> first(size_t n) const;

  // A queued request was admitted. It stays in the queue until erase_running().
  void admit(Request& request);
  // Records service of an admitted request, in seconds of steps.
  void serve(Request& request, double service);
  // The request no longer runs: it ended or was preempted.
  void leave(Request& request);
  // Total service of the tenant's requests.
  double service(TenantId tenant) const;
  // True if requests of several tenants wait.
  bool contended() const;

  // Returns an empty string, or the first violated invariant. For tests.
  std::string check() const;

 private:
  struct Lane {
    std::vector<std::shared_ptr<Request>> requests;
    size_t running = 0;  // admitted, and still running
    double share = 1;
    double served = 0;   // charges divided by share, plus service forgone while it had no requests
    double service = 0;  // total of its requests
    double typical = 0;  // service per request: moving average
  };
  struct Head {  // the next request of a lane
    const Lane* lane;
    size_t index;
    double served;

    const Request& request() const { return *lane->requests[index]; }
  };

  static bool sorts_after(const Head& a, const Head& b);
  std::vector<Head> heads() const;
  double min_service() const;

  // A tenant stays here after its last request leaves, so that its debt is remembered.
  std::map<TenantId, Lane> lanes_;
  double last_service_ = 0;  // `served` of the last tenant to leave the queue
  size_t size_ = 0;
};

}  // namespace valora::scheduler
