// What a workload is run on: an engine in this process, or a server.
#pragma once

#include <memory>

#include "api/engine.h"

namespace valora::bench {

// Thread-safe. Results arrive through the sinks, on threads of the target.
class LiveTarget {
 public:
  virtual ~LiveTarget() = default;

  // Errors that are known at once; later ones go to the sink.
  virtual Status submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink) = 0;
  // Zeros where they are not known.
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
