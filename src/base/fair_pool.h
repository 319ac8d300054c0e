// A fixed number of threads that share their work fairly between clients: each free thread takes
// the oldest job of the client that was served least recently. For media and file work, not for
// compute.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace valora {

class FairPool {
 public:
  using Job = std::function<void()>;

  // per_client: the most threads that jobs of one client hold at the same time.
  explicit FairPool(int threads, int per_client = std::numeric_limits<int>::max());
  // Runs all posted jobs first. A job that should no longer run must check that itself.
  ~FairPool();

  // `id` names the job for withdraw(). The job itself may let another thread destroy the pool:
  // post() no longer touches it once the job can run.
  void post(const std::string& client, uint64_t id, Job job);
  // Takes back a job of this client that no thread has begun; empty if there is none.
  Job withdraw(const std::string& client, uint64_t id);

 private:
  struct Waiting {
    uint64_t id;
    Job job;
  };
  struct Client {
    std::string name;
    std::deque<Waiting> jobs;
    int running = 0;
  };
  using Clients = std::list<Client>;

  void work();
  Clients::iterator next_client();
  void leave_if_done(Clients::iterator client);

  const int per_client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Clients clients_;  // with waiting or running jobs, least recently served first
  std::unordered_map<std::string, Clients::iterator> by_name_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace valora
