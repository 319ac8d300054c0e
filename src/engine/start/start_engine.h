// Starts an engine in this process.
#pragma once

#include <functional>
#include <memory>

#include "api/options.h"
#include "base/clock.h"
#include "base/result.h"
#include "serving/local_engine.h"

namespace valora {

namespace scheduler {
class Policy;
}
namespace serving {
struct CoreConfig;
}

// What measurements and tests exchange; no option of a server sets it.
struct EngineChanges {
  // Makes the scheduling policy; null: the one that the options name.
  std::function<std::unique_ptr<scheduler::Policy>()> policy;
  // Changes the settings of scheduler and pool that follow from the options; null: none.
  std::function<Status(serving::CoreConfig&)> core;
};

// Loads the model and starts the threads. Errors name the file or option at fault. `clock` must
// outlive the engine.
Result<std::unique_ptr<serving::LocalEngine>> start_engine(const EngineOptions& options,
                                                           const Clock& clock = real_clock(),
                                                           const EngineChanges& changes = {});

}  // namespace valora
