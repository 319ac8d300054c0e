// Starts an engine in this process.
#pragma once

#include <memory>

#include "api/options.h"
#include "base/clock.h"
#include "base/result.h"
#include "serving/local_engine.h"

namespace valora {

// Loads the model and starts the threads. Errors name the file or option at fault. `clock` must
// outlive the engine.
Result<std::unique_ptr<serving::LocalEngine>> start_engine(const EngineOptions& options,
                                                           const Clock& clock = real_clock());
// As above, but with `policy` instead of the policy that `options` names; for measurements.
Result<std::unique_ptr<serving::LocalEngine>> start_engine(
    const EngineOptions& options, const Clock& clock, std::unique_ptr<scheduler::Policy> policy);

}  // namespace valora
