#include "base/threads/fair_pool.h"

#include <algorithm>

namespace valora {

FairPool::FairPool(int threads, int per_client) : per_client_(per_client) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

FairPool::~FairPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void FairPool::post(const std::string& client, uint64_t id, Job job) {
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(client);
  if (known != by_name_.end()) {
    known->second->jobs.push_back({id, std::move(job)});
  } else {
    // Built completely before it is inserted: running out of memory must change nothing.
    Clients added;
    added.push_back({client, {}, 0});
    added.back().jobs.push_back({id, std::move(job)});
    by_name_.emplace(client, added.begin());
    // At the end: clients that came earlier are served first.
    clients_.splice(clients_.end(), added);
  }
  // While the lock is held: once it is released, the job may run and destroy the owner of this
  // pool.
  wake_.notify_one();
}

FairPool::Job FairPool::withdraw(const std::string& client, uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = by_name_.find(client);
  if (it == by_name_.end()) return {};
  auto& jobs = it->second->jobs;
  const auto found = std::ranges::find(jobs, id, &Waiting::id);
  if (found == jobs.end()) return {};
  Job job = std::move(found->job);
  jobs.erase(found);
  remove_if_idle(it->second);
  return job;
}

FairPool::Clients::iterator FairPool::next_client() {
  return std::ranges::find_if(clients_, [this](const Client& client) {
    return !client.jobs.empty() && client.running < per_client_;
  });
}

void FairPool::remove_if_idle(Clients::iterator client) {
  if (client->running > 0 || !client->jobs.empty()) return;
  by_name_.erase(client->name);
  clients_.erase(client);
}

void FairPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    Clients::iterator client;
    wake_.wait(lock, [&] {
      client = next_client();
      return client != clients_.end() || (stop_ && clients_.empty());
    });
    if (client == clients_.end()) return;
    Job job = std::move(client->jobs.front().job);
    client->jobs.pop_front();
    ++client->running;
    clients_.splice(clients_.end(), clients_, client);
    lock.unlock();
    job();
    job = nullptr;  // destroyed outside the lock
    lock.lock();
    --client->running;
    remove_if_idle(client);
    // The client's next job may have waited because of per_client, and the destructor for this job.
    wake_.notify_all();
  }
}

}  // namespace valora
