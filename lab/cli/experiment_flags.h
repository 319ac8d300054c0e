// Options that exchange parts of the pool and of the policies.
#pragma once

#include "cli/options/parser.h"
#include "lab/engine/experiments.h"

namespace valora::cli {

void add_experiment_flags(Command command, bench::Experiments& experiments);

}  // namespace valora::cli
