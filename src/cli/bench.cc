// `valora bench`: the benchmarks, each a subcommand.
#include "cli/command.h"

namespace valora::cli {

void add_bench(Command app, std::function<int()>& run) {
  Command c = app.add_subcommand("bench", "Measure");
  c.require_subcommand();
  add_bench_ops(c, run);
  add_bench_serve(c, run);
  add_bench_memory(c, run);
  add_bench_memory_live(c, run);
  add_bench_trace(c, run);
}

}  // namespace valora::cli
