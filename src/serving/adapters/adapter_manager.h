// Loads, unloads and pins adapters, and resolves their names.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/request.h"
#include "base/threads/fair_pool.h"
#include "memory/pool.h"
#include "serving/adapters/adapter_backend.h"
#include "serving/adapters/adapter_table.h"
#include "serving/loop/engine_loop.h"
#include "serving/prompts/frontend.h"

namespace valora::serving {

// Thread-safe. Adapter workers do the work; the calls of one name run in their order, of different
// names at the same time. The pool keeps the weights of an adapter while a name that has them is
// pinned: a worker pins before it changes the table, and unpins after, if no pinned name is left.
class AdapterManager {
 public:
  // The backend, the frontend and the loop must outlive the manager.
  AdapterManager(size_t max_adapters, const memory::PoolConfig& pool, AdapterBackend& backend,
                 const Frontend& frontend, EngineLoop& loop);
  ~AdapterManager() { stop(); }
  // Ends the workers; calls that have not begun fail. The engine thread must still run. Nothing may
  // be loaded, unloaded or pinned afterwards.
  void stop();

  // The methods of Engine.
  void load(LoadAdapter request, std::function<void(Result<AdapterCard>)> done);
  void unload(const std::string& name, std::optional<uint64_t> expected_generation,
              std::function<void(Status)> done);
  void pin(const std::string& name, bool pinned, std::optional<uint64_t> expected_generation,
           std::function<void(Status)> done);
  std::vector<AdapterCard> cards() const;
  std::optional<AdapterCard> card(const std::string& name) const;
  // kNotFound: an adapter does not exist.
  Result<std::vector<AppliedAdapter>> applied(const std::vector<AdapterUse>& uses) const;

 private:
  using Needs = std::vector<memory::AdapterNeed>;

  Result<AdapterCard> try_load(const LoadAdapter& request);
  Result<AdapterCard> load_files(const LoadAdapter& request);
  // Serves what was read under the request's name.
  Result<AdapterCard> serve(const LoadAdapter& request, const AdapterBackend::Read& read);
  Result<AdapterCard> add_name(const LoadAdapter& request);
  Status try_unload(const std::string& name, std::optional<uint64_t> expected_generation);
  Status try_pin(const std::string& name, bool pinned, std::optional<uint64_t> expected_generation);
  Status check_room(const LoadedAdapter& adapter) const;
  Result<bool> pin_content(const memory::AdapterNeed& need);
  // Pins all of them or none. Contents pinned under another name stay pinned.
  Status pin_all(const Needs& needs);
  void unpin_if_free(const Needs& needs);
  // Drops the contents' KV and their places in the pool.
  void forget(const std::vector<Digest>& contents);
  void add_residency(AdapterCard& card) const;

  const memory::PoolConfig pool_;
  AdapterBackend& backend_;
  const Frontend& frontend_;
  EngineLoop& loop_;
  AdapterTable table_;
  // Held while a worker changes the table together with pins and with what the engine thread is
  // told of them, so that these agree: the outermost lock. Not held while files are read.
  std::mutex changing_;
  std::atomic<bool> stopping_ = false;  // workers start no new work
  std::unique_ptr<FairPool> workers_;
};

}  // namespace valora::serving
