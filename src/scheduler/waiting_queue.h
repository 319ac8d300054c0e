// The waiting requests in the order in which they are to be served: by priority, and fairly between
// tenants. The fairness is that of virtual token counters (Sheng et al., OSDI '24), counted in the
// time of steps instead of tokens: of the tenants that wait, the one that was served least for its
// share goes first. So the place of a request depends on the service of its own tenant alone, not
// on how many requests another one sends. A tenant is charged for a request when it is admitted, by
// what its requests took before, or it would get all places that are free at once; when the request
// ends, the charge is corrected.
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

  // Takes no memory for a request that ran before: each admitted one keeps its place.
  void push(std::shared_ptr<Request> request);
  // One that no other request of its tenant comes after; null if none waits.
  Request* last() const;
  // The request must outlive the call. No effect if it is not in the queue.
  void erase(const Request& request);
  // Removes the requests that run now, which are among the first `n`.
  void erase_running(size_t n);

  // The first requests, `n` or all. Of one tenant: by priority; of one priority preempted requests
  // by arrival, then the others as they came. Those that are ahead count as served.
  std::vector<Request*> first(size_t n) const;

  // A request of the queue was admitted. It stays in the queue until erase_running().
  void admit(Request& request);
  // It got this much service, in seconds of steps.
  void serve(Request& request, double service);
  // It runs no more: it ended or was preempted.
  void leave(Request& request);
  // Service of the tenant's requests so far.
  double service(TenantId tenant) const;
  // True if requests of several tenants wait.
  bool contended() const;

  // Empty, or the first violated invariant. For tests.
  std::string check() const;

 private:
  struct Lane {
    std::vector<std::shared_ptr<Request>> requests;
    size_t running = 0;  // admitted, and not left
    double share = 1;
    double served = 0;   // charges by share, plus the service forgone while it had no request
    double service = 0;  // of all its requests
    double typical = 0;  // service of a request: mean of the last ones
  };
  struct Head {  // the next request of a lane
    const Lane* lane;
    size_t index;
    double served;

    const Request& request() const { return *lane->requests[index]; }
  };

  static bool comes_after(const Head& a, const Head& b);
  std::vector<Head> heads() const;
  double least_served() const;

  // A tenant stays here when its last request leaves: a debt is not forgotten.
  std::map<TenantId, Lane> lanes_;
  double last_left_ = 0;  // `served` of the tenant that last left the queue
  size_t size_ = 0;
};

}  // namespace valora::scheduler
