// `valora quantize`: writes a model folder in which the decoder's linears are quantised to
// integers.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/options/named_option.h"
#include "cli/progress/format.h"
#include "cli/progress/progress_bar.h"
#include "cli/progress/stop_signals.h"
#include "generator/quantise/options.h"

namespace valora::cli {
namespace {

using generator::QuantiseOptions;
using generator::QuantiseReport;

void print_report(const QuantiseOptions& options, const QuantiseReport& report) {
  constexpr double kMegabyte = 1e6;
  fmt::print("{}: {} linears as {}, {:.1f} MB instead of {:.1f} MB\n", options.output,
             report.linears, generator::name_of(options.scheme),
             static_cast<double>(report.bytes_after) / kMegabyte,
             static_cast<double>(report.bytes_before) / kMegabyte);
  if (report.samples > 0)
    fmt::print("  rounded by the outputs of {} samples, {} tokens\n", report.samples,
               report.tokens);
  fmt::print("  relative error of the weights: {:.2f} %\n", 100 * report.weight_error);
}

int run_quantize(QuantiseOptions& options, const HubFlags& hub) {
  // Before signals are taken for requests to leave no folder.
  if (const Status s = NamedFolders(hub).set_model(options.engine); !s.ok()) return fail(s.error());
  const StopSignals signals;
  options.engine.fetch.allowed_local_path = "/";  // whoever runs the command may read any file
  Result<QuantiseReport> report = [&] {
    ProgressBar bar;
    return generator::quantise_folder(
        options, {.progress = [&](const std::string& what, int64_t done,
                                  int64_t total) { bar.show(done, total, what); },
                  .stop = signals.token()});
  }();
  if (signals.exit_status() != 0) return signals.exit_status();
  if (!report.ok()) return fail(report.error());
  print_report(options, *report);
  return 0;
}

}  // namespace

void add_quantize(Command app, std::function<int()>& run) {
  auto options = std::make_shared<QuantiseOptions>();
  QuantiseOptions& o = *options;
  auto hub = std::make_shared<HubFlags>();
  Command c = app.add_subcommand(
      "quantize",
      "Write a model folder whose decoder has linears in integers, in the form of "
      "compressed-tensors, which vLLM and transformers load as well. Exit status: 0; 143 or 130 "
      "after SIGTERM or SIGINT, which leave no folder; 1 after an error");
  c.add_option("dir,--model", o.engine.model_path,
               "Folder of a Hugging Face checkpoint in floats, or OWNER/NAME on its hub")
      .required();
  add_hub_flags(c, *hub);
  c.add_option("--output", o.output, "The new folder").required();
  add_named_option(c, "--scheme", o.scheme, generator::parse_quantise_scheme,
                   "Bits of weights and inputs: W4A16, W8A16, or W8A8 (inputs rounded in each "
                   "product: such folders are served unmerged)");
  c.add_option(
      "--group-size", o.group,
      "Inputs that share a scale; a linear whose inputs it does not divide has a scale per "
      "output (default: 32 with 4 bits, 128 with W8A16)");
  c.add_option(
      "--tasks", o.tasks,
      "Tasks file (docs/tasks.md): weights are rounded so that the outputs change least on "
      "the tasks' training samples (default: each weight to the nearest value)");
  c.add_option("--text", o.text,
               "Text file, for the same purpose: it is cut into windows of 512 tokens");
  c.add_option("--samples", o.samples, "Highest number of samples and windows together")
      .capture_default_str();
  o.engine.dtype = ComputeDtype::kFloat32;
  add_named_option(c, "--dtype", o.engine.dtype, parse_dtype,
                   "Data type of the passes over samples: float32, or bfloat16 in half the memory");
  c.add_option("--threads", o.engine.threads, "Compute threads; 0: one per core")
      .capture_default_str();
  c.callback(
      [options, hub, &run] { run = [options, hub] { return run_quantize(*options, *hub); }; });
}

}  // namespace valora::cli
