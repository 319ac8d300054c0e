// The end of an engine whose threads may stand still.
#pragma once

#include <memory>

#include "serving/local_engine.h"

namespace valora::cli {

// Destroys the engine, which waits for its threads. If that takes longer than stall_timeout seconds
// (a few, if requests stand still), the process ends with status 1: a thread that stands still can
// be neither joined nor stopped. 0: waits as long as it takes. Returns the exit status, 0.
int end_engine(std::unique_ptr<serving::LocalEngine> engine, double stall_timeout);

}  // namespace valora::cli
