// Shuts down an engine whose threads may be stuck.
#pragma once

#include <memory>

#include "serving/local_engine.h"

namespace valora::cli {

// Destroys the engine, which waits for its threads. If that takes longer than stall_timeout seconds
// (a few, if requests are stalled), ends the process with status 1: a stuck thread can be neither
// joined nor stopped. 0: waits as long as it takes. Returns the exit status, 0.
int end_engine(std::unique_ptr<serving::LocalEngine> engine, double stall_timeout);

}  // namespace valora::cli
