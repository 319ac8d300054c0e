// `valora bench …`: runs the program valora-bench, which measures and is built apart.
#pragma once

#include <optional>

#include "cli/options/parser.h"

namespace valora::cli {

// For --help alone: run_bench() has seen the command before.
void add_bench(Command app);
// Absent if the command is another one. Otherwise valora-bench replaces this process, with the same
// arguments: the one in the program's folder, else the one on the PATH. Returns, with the exit
// status, only if there is none; then it has said so.
std::optional<int> run_bench(int argc, char** argv);

}  // namespace valora::cli
