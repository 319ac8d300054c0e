// The interface of the engine. All methods are thread-safe and return at once. Results arrive
// through sinks and callbacks, which run on engine threads and must neither block nor throw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/cards.h"
#include "api/load_adapter.h"
#include "api/request.h"
#include "api/stats.h"
#include "base/result.h"

namespace valora {

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const ModelCard& model() const = 0;

  // Returns the errors that are known at once: kInvalidArgument, kNotFound (an adapter),
  // kQueueFull, kUnavailable (while draining). Later errors go to the sink.
  virtual Result<RequestHandle> submit(GenerateRequest request,
                                       std::shared_ptr<ResponseSink> sink) = 0;
  // Ends a request; its sink is no longer called. Ignores unknown and ended handles.
  virtual void cancel(RequestHandle handle) = 0;

  virtual void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) = 0;
  virtual void unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                              std::function<void(Status)> done) = 0;
  // Keeps the weights of an adapter in the pool from now on, or no longer. kNotFound; kConflict, as
  // above; kUnavailable: pinned adapters would take more of the pool than they may.
  virtual void pin_adapter(std::string name, bool pinned,
                           std::optional<uint64_t> expected_generation,
                           std::function<void(Status)> done) = 0;
  virtual std::vector<AdapterCard> adapters() const = 0;

  // In the tokens of requests with these adapters, which may have some of their own. kNotFound: an
  // adapter.
  virtual Result<std::vector<int32_t>> tokenize(
      const Prompt& prompt, bool add_special_tokens,
      const std::vector<AdapterUse>& adapters = {}) const = 0;
  virtual Result<std::string> detokenize(const std::vector<int32_t>& ids,
                                         const std::vector<AdapterUse>& adapters = {}) const = 0;

  virtual EngineStats stats() const = 0;
  virtual void set_observer(StepObserver* observer) = 0;

  // False after the engine thread has ended with an internal error.
  virtual bool healthy() const = 0;
  // Empty, or why no request gets on: what waits, and for what.
  virtual std::string standstill() const = 0;
  // Rejects new requests from now on. Calls `done` when all running ones have ended; if they stand
  // still, they get kUnavailable, and a call of their sinks that was on its way may come after it.
  virtual void drain(std::function<void()> done) = 0;
};

}  // namespace valora
