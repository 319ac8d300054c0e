// `valora bench ops`: compares the CPU operations with other implementations, in this process.
#include <iostream>

#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"
#include "lab/cli/command.h"
#include "lab/ops/ops_bench.h"
#include "lab/ops/report.h"

namespace valora::cli {
namespace {

struct BenchOpsFlags {
  bench::Settings settings;
  std::string tiles;
  bool json = false;
};

// The tile table that an engine on this machine would choose.
Status choose_kernels(const BenchOpsFlags& flags) {
  VALORA_CHECK(kernels::select_isa());
  return kernels::load_tiles(flags.tiles);
}

int run_bench_ops(const BenchOpsFlags& flags) {
  const Status chosen = choose_kernels(flags);
  if (!chosen.ok()) return fail(chosen.error());
  Result<bench::OpsRun> run = bench::OpsRun{};
  {
    ProgressBar bar;
    run = bench::run_ops_bench(flags.settings, [&](int done, int total, const std::string& next) {
      bar.show(done, total, next);
    });
  }
  if (!run.ok()) return fail(run.error());
  if (flags.json)
    print_json(bench::ops_report_json(*run));
  else
    std::cout << bench::ops_report_text(*run);
  return 0;
}

}  // namespace

void add_bench_ops(Command bench, std::function<int()>& run) {
  auto flags = std::make_shared<BenchOpsFlags>();
  bench::Settings& settings = flags->settings;
  Command c = bench.add_subcommand("ops",
                                   "Compare the speed of each CPU operation with ATen, oneDNN, "
                                   "and the methods of S-LoRA, Punica and dLoRA");
  c.add_flag("--quick", settings.quick, "Run fewer shapes and rounds, in under a minute");
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.add_option("--threads", settings.threads, "Compute threads (default: libtorch's)")
      .positive_number();
  c.add_option("--filter", settings.filter,
               "Measure only shapes whose name contains this text, e.g. linear or \"rank 16\"");
  c.add_option(
       "--seconds", settings.seconds,
       "Seconds per shape, for all implementations together (default: 0.5; 0.15 with --quick)")
      .positive_number();
  c.add_option(
      "--tiles", flags->tiles,
      "Tile table of `valora tune` (default: the one that an engine on this machine uses)");
  c.callback([flags, &run] { run = [flags] { return run_bench_ops(*flags); }; });
}

}  // namespace valora::cli
