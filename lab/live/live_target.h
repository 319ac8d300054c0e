// The target of a workload: an engine in this process, or a server.
#pragma once

#include <memory>

#include "api/engine.h"

namespace valora::bench {

// Thread-safe. Results arrive through the sinks, on the target's threads.
class LiveTarget {
 public:
  virtual ~LiveTarget() = default;

  // Returns errors that are known at once; later ones go to the sink.
  virtual Status submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) = 0;
  // Unknown values are zero.
  virtual EngineStats stats() const = 0;
};

class EngineTarget final : public LiveTarget {
 public:
  // The engine must outlive the target.
  explicit EngineTarget(Engine& engine) : engine_(engine) {}

  Status submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) override {
    const auto handle = engine_.submit(std::move(request), std::move(sink));
    return handle.ok() ? Status() : Status(handle.error());
  }
  EngineStats stats() const override { return engine_.stats(); }

 private:
  Engine& engine_;
};

}  // namespace valora::bench
