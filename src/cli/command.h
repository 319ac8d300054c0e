// The subcommands of `valora`.
#pragma once

#include <functional>
#include <memory>
#include <optional>
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

// `valora bench …`: runs the program valora-bench, which measures and is built apart.
// For --help alone: run_bench() has seen the command before.
void add_bench(Command app);
// Absent if the command is another one. Otherwise valora-bench replaces this process, with the same
// arguments: the one in the program's folder, else the one on the PATH. Returns, with the exit
// status, only if there is none; then it has said so.
std::optional<int> run_bench(int argc, char** argv);

}  // namespace valora::cli
