// The subcommands of `valora`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/options.h"
#include "cli/options/engine_flags.h"
#include "cli/options/parser.h"
#include "cli/progress/format.h"

namespace valora::cli {

// Exit status of fuse and eval if a task misses its floor.
inline constexpr int kFloorMissed = 3;

// Each function adds one subcommand. Parsing sets `run` to the function of the command given, which
// returns the exit status.
void add_serve(Command app, std::function<int()>& run);
void add_generate(Command app, std::function<int()>& run);
void add_inspect(Command app, std::function<int()>& run);
void add_eval(Command app, std::function<int()>& run);
void add_run(Command app, std::function<int()>& run);
void add_watch(Command app, std::function<int()>& run);
void add_fuse(Command app, std::function<int()>& run);
void add_quantize(Command app, std::function<int()>& run);
void add_tune(Command app, std::function<int()>& run);
void add_doctor(Command app, std::function<int()>& run);

}  // namespace valora::cli
