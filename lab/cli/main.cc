// `valora-bench`, which `valora bench` runs: the benchmarks, each a subcommand.
#include "cli/progress/stop_signals.h"
#include "lab/cli/command.h"

int main(int argc, char** argv) {
  using namespace valora::cli;
  end_with_output_readers();
  Program program("valora bench: measures valora and compares it with other systems",
                  std::string("valora-bench ") + VALORA_VERSION);
  Command app = program.command();
  std::function<int()> run;
  add_bench_ops(app, run);
  add_bench_serve(app, run);
  add_bench_memory(app, run);
  add_bench_memory_live(app, run);
  add_bench_trace(app, run);
  return program.run(argc, argv, run);
}
