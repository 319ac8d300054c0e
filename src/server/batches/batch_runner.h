// Runs the batches of a store: one after the other of each owner, those of different owners at
// once. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "server/batches/batch_store.h"
#include "server/batches/batch_work.h"

namespace valora::server {

class BatchRunner {
 public:
  // The headers of the owner's requests; nullopt: there is no such user any more.
  using Identity = std::function<std::optional<Headers>(const std::string& owner)>;

  // The store must outlive this object.
  BatchRunner(BatchStore& store, AskRow ask, Identity identity);
  ~BatchRunner();  // stop()
  BatchRunner(const BatchRunner&) = delete;
  BatchRunner& operator=(const BatchRunner&) = delete;

  BatchStore& store() { return store_; }
  const BatchStore& store() const { return store_; }
  const RowTotals& totals() const { return totals_; }

  // Goes on with the batches that an earlier process has not ended. Called once.
  void resume();
  // Begins a batch of the store.
  void begin(const BatchRecord& batch);
  // kConflict: it has ended, or its answers are being put together.
  Result<BatchRecord> cancel(const std::string& id);

  // Asks no more rows; those in flight end. Returns at once.
  void drain();
  // Leaves the rows in flight and ends the threads. What is not done, the next process does.
  void stop();

 private:
  struct Job {
    std::string id, owner;
    BatchControl control;
    std::atomic<bool> ended = false;
    std::thread thread;
  };

  void work(Job& job);
  bool has_turn(const Job& job);
  int share();
  HttpRequest request_of(const std::string& owner, BatchLine line) const;
  AskRow ask_of(const std::string& owner) const;
  void end(Job& job);
  void join_ended();

  BatchStore& store_;
  const AskRow ask_;
  const Identity identity_;
  RowTotals totals_;
  std::mutex validation_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;  // by id: in the order of their creation
  bool stopped_ = false;
  RowThread thread_;
};

}  // namespace valora::server
