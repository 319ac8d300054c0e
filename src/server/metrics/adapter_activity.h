// The adapter names used by accepted requests, as clients spell them. Several names may share one
// loaded adapter, which the engine reports under the name it was loaded with.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "api/request.h"

namespace valora::server {

// Thread-safe.
class AdapterActivity {
 public:
  // Counts the names of one request: first not at all, then as waiting once accepted, then as
  // running, and not at all after it ends or this object is destroyed. started() may come before
  // accepted().
  class Request {
   public:
    Request(std::shared_ptr<AdapterActivity> activity, const std::vector<AdapterUse>& uses);
    ~Request() { ended(); }
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

    void accepted() { activity_->move(*this, kWaiting); }
    void started() { activity_->move(*this, kRunning); }
    void ended() { activity_->move(*this, kEnded); }

   private:
    friend class AdapterActivity;
    const std::shared_ptr<AdapterActivity> activity_;
    std::vector<std::string> names_;
    int state_ = kNew;
  };

  std::set<std::string> waiting() const { return names(kWaiting); }
  std::set<std::string> running() const { return names(kRunning); }

 private:
  enum State { kNew, kWaiting, kRunning, kEnded };
  using Counts = std::map<std::string, int>;

  // States only advance: a late accepted() changes nothing.
  void move(Request& request, State state);
  static void add(const std::vector<std::string>& names, Counts& counts);
  static void remove(std::span<const std::string> names, Counts& counts);
  std::set<std::string> names(State state) const;

  mutable std::mutex mutex_;
  Counts counts_[kEnded];  // requests per name, by state
};

}  // namespace valora::server
