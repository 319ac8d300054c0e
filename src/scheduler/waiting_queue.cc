#include "scheduler/waiting_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/reserve.h"

namespace valora::scheduler {
namespace {

// The order among one tenant's requests.
bool goes_before(const std::shared_ptr<Request>& a, const std::shared_ptr<Request>& b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  const bool preempted = a->preemptions > 0;
  if (preempted != (b->preemptions > 0)) return preempted;
  return preempted && std::pair(a->arrival, a->id) < std::pair(b->arrival, b->id);
}

// Number of tenants whose debt is remembered; beyond it, idle ones are forgotten.
constexpr size_t kMostTenants = 4096;

}  // namespace

bool WaitingQueue::sorts_after(const Head& a, const Head& b) {
  const Request &x = a.request(), &y = b.request();
  if (x.priority != y.priority) return x.priority > y.priority;
  if (a.served != b.served) return a.served > b.served;
  return std::pair(x.arrival, x.id) > std::pair(y.arrival, y.id);
}

std::vector<WaitingQueue::Head> WaitingQueue::heads() const {
  std::vector<Head> heads;
  for (const auto& [tenant, lane] : lanes_)
    if (!lane.requests.empty()) heads.push_back({&lane, 0, lane.served});
  return heads;
}

std::vector<Request*> WaitingQueue::first(size_t n) const {
  std::vector<Request*> order;
  order.reserve(std::min(n, size_));
  std::vector<Head> heads = this->heads();
  std::ranges::make_heap(heads, sorts_after);
  while (order.size() < n && !heads.empty()) {
    std::ranges::pop_heap(heads, sorts_after);
    Head& head = heads.back();
    order.push_back(head.lane->requests[head.index].get());
    if (++head.index == head.lane->requests.size()) {
      heads.pop_back();
      continue;
    }
    head.served += head.lane->typical / head.lane->share;
    std::ranges::push_heap(heads, sorts_after);
  }
  return order;
}

// The least service among the waiting tenants.
double WaitingQueue::min_service() const {
  double least = -1;
  for (const auto& [tenant, lane] : lanes_)
    if (!lane.requests.empty() && (least < 0 || lane.served < least)) least = lane.served;
  return least < 0 ? last_service_ : least;
}

bool WaitingQueue::contended() const {
  return std::ranges::count_if(
             lanes_, [](const auto& entry) { return !entry.second.requests.empty(); }) > 1;
}

// A tenant that joins gets no credit for the time in which it had no requests.
void WaitingQueue::push(std::shared_ptr<Request> request) {
  if (lanes_.size() > kMostTenants && !lanes_.contains(request->tenant))
    std::erase_if(lanes_, [](const auto& entry) {
      return entry.second.requests.empty() && entry.second.running == 0;
    });
  Lane& lane = lanes_[request->tenant];
  reserve_more(lane.requests, lane.running + 1);
  if (lane.requests.empty()) lane.served = std::max(lane.served, min_service());
  lane.share = request->share;
  lane.requests.insert(std::ranges::upper_bound(lane.requests, request, goes_before),
                       std::move(request));
  ++size_;
}

Request* WaitingQueue::last() const {
  for (const auto& [tenant, lane] : lanes_)
    if (!lane.requests.empty()) return lane.requests.back().get();
  return nullptr;
}

void WaitingQueue::erase(const Request& request) {
  const auto found = lanes_.find(request.tenant);
  if (found == lanes_.end()) return;
  Lane& lane = found->second;
  const auto it =
      std::ranges::find(lane.requests, &request, [](const auto& owned) { return owned.get(); });
  if (it == lane.requests.end()) return;
  lane.requests.erase(it);
  --size_;
  if (lane.requests.empty()) last_service_ = lane.served;
}

void WaitingQueue::erase_running(size_t n) {
  for (auto& [tenant, lane] : lanes_) {
    if (lane.requests.empty()) continue;
    const auto end =
        lane.requests.begin() + static_cast<ptrdiff_t>(std::min(n, lane.requests.size()));
    const auto kept = std::remove_if(lane.requests.begin(), end, [](const auto& request) {
      return request->state == RequestState::kRunning;
    });
    size_ -= static_cast<size_t>(end - kept);
    lane.requests.erase(kept, end);
    if (lane.requests.empty()) last_service_ = lane.served;
  }
}

void WaitingQueue::admit(Request& request) {
  Lane& lane = lanes_.at(request.tenant);
  ++lane.running;
  request.service = 0;
  request.advance = lane.typical;
  lane.served += request.advance / lane.share;
}

void WaitingQueue::serve(Request& request, double service) {
  const auto found = lanes_.find(request.tenant);
  if (found == lanes_.end()) return;  // the request ended, and its tenant was forgotten
  Lane& lane = found->second;
  lane.service += service;
  const double before = std::max(request.service, request.advance);
  request.service += service;
  lane.served += std::max(0.0, request.service - before) / lane.share;
}

void WaitingQueue::leave(Request& request) {
  constexpr double kNewest = 0.1;
  Lane& lane = lanes_.at(request.tenant);
  --lane.running;
  lane.served -= std::max(0.0, request.advance - request.service) / lane.share;
  lane.typical += (lane.typical == 0 ? 1 : kNewest) * (request.service - lane.typical);
  request.advance = request.service = 0;
}

double WaitingQueue::service(TenantId tenant) const {
  const auto found = lanes_.find(tenant);
  return found == lanes_.end() ? 0 : found->second.service;
}

std::string WaitingQueue::check() const {
  size_t size = 0;
  for (const auto& [tenant, lane] : lanes_) {
    size += lane.requests.size();
    for (size_t i = 0; i < lane.requests.size(); ++i) {
      const Request& request = *lane.requests[i];
      if (request.tenant != tenant)
        return fmt::format("request {} is in the queue of another tenant", request.id);
      if (i > 0 && goes_before(lane.requests[i], lane.requests[i - 1]))
        return fmt::format("request {} is queued behind request {}, which should follow it",
                           request.id, lane.requests[i - 1]->id);
    }
  }
  if (size != size_) return fmt::format("{} requests are queued, but {} are counted", size, size_);
  return {};
}

}  // namespace valora::scheduler
