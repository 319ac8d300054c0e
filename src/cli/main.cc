#include <cstdio>

#include "base/log.h"
#include "cli/command.h"
#include "cli/options/unknown_options.h"

namespace valora::cli {

int fail(const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.message.c_str());
  return 1;
}

}  // namespace valora::cli

int main(int argc, char** argv) {
  CLI::App app("valora: one vision-language model, many LoRA adapters");
  app.set_version_flag("--version", std::string("valora ") + VALORA_VERSION);
  app.require_subcommand(1);
  app.fallthrough();  // --log-level may stand after the command
  std::string log_level = "info";
  app.add_option("--log-level", log_level, "Log level: trace, debug, info, warning, error or off")
      ->capture_default_str();
  std::function<int()> run;
  valora::cli::add_serve(app, run);
  valora::cli::add_generate(app, run);
  valora::cli::add_inspect(app, run);
  valora::cli::add_eval(app, run);
  valora::cli::add_fuse(app, run);
  valora::cli::add_tune(app, run);
  valora::cli::add_bench(app, run);
  try {
    app.parse(argc, argv);
    valora::set_up_logging(log_level);
    return run();
  } catch (const CLI::ExtrasError& e) {
    for (const std::string& line : valora::cli::describe_unknown(app))
      std::fprintf(stderr, "error: %s\n", line.c_str());
    return e.get_exit_code();
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
