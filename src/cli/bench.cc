// `valora bench`: the benchmarks, each a subcommand.
#include "cli/command.h"

namespace valora::cli {

void add_bench(CLI::App& app, std::function<int()>& run) {
  CLI::App& c = *app.add_subcommand("bench", "Measure");
  c.require_subcommand(1);
  add_bench_ops(c, run);
  add_bench_serve(c, run);
  add_bench_memory(c, run);
}

}  // namespace valora::cli
