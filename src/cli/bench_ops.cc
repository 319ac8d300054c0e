// `valora bench ops`: compares the CPU operations with other implementations, in this process.
#include <iostream>

#include "bench/ops/ops_bench.h"
#include "bench/ops/report.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/progress_bar.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/tiles/find_tiles.h"

namespace valora::cli {
namespace {

struct Flags {
  bench::Settings settings;
  std::string tiles;
  bool json = false;
};

// The tile table that an engine on this machine would choose.
Status choose_kernels(const Flags& flags) {
  VALORA_CHECK(kernels::select_isa());
  return kernels::load_tiles(flags.tiles);
}

int run_bench_ops(const Flags& flags) {
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

void add_bench_ops(CLI::App& bench, std::function<int()>& run) {
  auto flags = std::make_shared<Flags>();
  bench::Settings& settings = flags->settings;
  CLI::App& c = *bench.add_subcommand("ops",
                                      "Measure every CPU operation against rivals: ATen and "
                                      "oneDNN, S-LoRA's, Punica's and dLoRA's ways");
  c.add_flag("--quick", settings.quick, "Fewer shapes and rounds: under a minute");
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.add_option("--threads", settings.threads, "Compute threads; else as many as libtorch takes")
      ->check(CLI::PositiveNumber);
  c.add_option("--filter", settings.filter,
               "Only shapes whose name contains this, e.g. linear or \"rank 16\"");
  c.add_option("--seconds", settings.seconds,
               "To measure a shape, for all rivals together; else 0.5, with --quick 0.15")
      ->check(CLI::PositiveNumber);
  c.add_option("--tiles", flags->tiles,
               "A table of `valora tune`, in the place of the one that an engine here would take");
  c.callback([flags, &run] { run = [flags] { return run_bench_ops(*flags); }; });
}

}  // namespace valora::cli
