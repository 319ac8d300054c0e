// The interface of the engine. All methods are thread-safe and return at once. Results arrive
// through sinks and callbacks, which run on engine threads and must neither block nor throw.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

  // Returns errors that are known at once: kInvalidArgument, kNotFound (an adapter), kQueueFull,
  // kUnavailable (while draining). Later errors go to the sink.
  virtual Result<RequestHandle> submit(GenerateRequest request,
                                       std::shared_ptr<ResponseSink> sink) = 0;
  // Ends a request; its sink is no longer called. Ignores unknown and ended handles.
  virtual void cancel(RequestHandle handle) = 0;

  virtual void load_adapter(LoadAdapter request, std::function<void(Result<AdapterCard>)> done) = 0;
  virtual void unload_adapter(std::string name, std::optional<uint64_t> expected_generation,
                              std::function<void(Status)> done) = 0;
  // Pins an adapter's weights in the pool, or unpins them. Errors: kNotFound; kConflict, as above;
  // kUnavailable if pinned adapters would exceed their share of the pool.
  virtual void pin_adapter(std::string name, bool pinned,
                           std::optional<uint64_t> expected_generation,
                           std::function<void(Status)> done) = 0;
  virtual std::vector<AdapterCard> adapters() const = 0;
  // The card of this name alone; nullopt if it is not loaded.
  virtual std::optional<AdapterCard> adapter(const std::string& name) const {
    for (AdapterCard& card : adapters())
      if (card.name == name) return std::move(card);
    return std::nullopt;
  }

  // Uses the vocabulary of requests with these adapters, which may add tokens. kNotFound: an
  // adapter.
  virtual Result<std::vector<int32_t>> tokenize(
      const Prompt& prompt, bool add_special_tokens,
      const std::vector<AdapterUse>& adapters = {}) const = 0;
  virtual Result<std::string> detokenize(const std::vector<int32_t>& ids,
                                         const std::vector<AdapterUse>& adapters = {}) const = 0;

  virtual EngineStats stats() const = 0;
  virtual void set_observer(StepObserver* observer) = 0;

  // False once the engine thread has ended with an internal error.
  virtual bool healthy() const = 0;
  // Why no request makes progress (what waits, and for what); empty if some do.
  virtual std::string standstill() const = 0;
  // Rejects new requests from now on. Calls `done` when all running ones have ended. If they stall,
  // they get kUnavailable; a sink call that was already under way may then come after `done`.
  virtual void drain(std::function<void()> done) = 0;
};

}  // namespace valora
