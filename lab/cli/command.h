// The subcommands of `valora-bench`.
#pragma once

#include <functional>
#include <memory>

#include "cli/options/engine_flags.h"
#include "cli/options/parser.h"
#include "cli/progress/format.h"

namespace valora::cli {

// Each function adds one subcommand. Parsing sets `run` to the function of the command given, which
// returns the exit status.
void add_bench_ops(Command bench, std::function<int()>& run);
void add_bench_serve(Command bench, std::function<int()>& run);
void add_bench_memory(Command bench, std::function<int()>& run);
void add_bench_memory_live(Command bench, std::function<int()>& run);
void add_bench_trace(Command bench, std::function<int()>& run);

}  // namespace valora::cli
