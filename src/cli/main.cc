#include <cstdio>

#include "base/log.h"
#include "cli/command.h"
#include "cli/progress/output_readers.h"

namespace valora::cli {

int fail(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

}  // namespace valora::cli

int main(int argc, char** argv) {
  valora::cli::end_with_output_readers();
  valora::cli::Program program("valora: one vision-language model, many LoRA adapters",
                               std::string("valora ") + VALORA_VERSION);
  valora::cli::Command app = program.command();
  app.require_subcommand();
  std::string log_level = "info";
  app.add_option("--log-level", log_level, "Log level: trace, debug, info, warning, error or off")
      .capture_default_str();
  std::function<int()> run;
  valora::cli::add_serve(app, run);
  valora::cli::add_generate(app, run);
  valora::cli::add_inspect(app, run);
  valora::cli::add_eval(app, run);
  valora::cli::add_fuse(app, run);
  valora::cli::add_quantize(app, run);
  valora::cli::add_tune(app, run);
  valora::cli::add_bench(app, run);
  try {
    if (const auto status = program.parse(argc, argv)) return *status;
    valora::set_up_logging(log_level);
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
