// A fixed number of threads shared fairly among clients: each free thread takes the oldest job of
// the client that was served least recently. For media and file work, not for compute.
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

  // per_client: the most threads that one client's jobs may occupy at a time.
  explicit FairPool(int threads, int per_client = std::numeric_limits<int>::max());
  // Runs all posted jobs first. A job that should no longer run must check that itself.
  ~FairPool();

  // `id` names the job for withdraw(). The job may let another thread destroy the pool: post() does
  // not touch the pool once the job can run.
  void post(const std::string& client, uint64_t id, Job job);
  // Removes and returns a job of this client that has not started; empty if there is none.
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
  void remove_if_idle(Clients::iterator client);

  const int per_client_;
  std::mutex mutex_;
  std::condition_variable wake_;
  Clients clients_;  // with waiting or running jobs, least recently served first
  std::unordered_map<std::string, Clients::iterator> by_name_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace valora
