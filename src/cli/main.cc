#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/progress/stop_signals.h"

int main(int argc, char** argv) {
  using namespace valora::cli;
  end_with_output_readers();
  if (const auto status = run_bench(argc, argv)) return *status;
  Program program("valora: one vision-language model, many LoRA adapters", version_text());
  Command app = program.command();
  std::function<int()> run;
  add_serve(app, run);
  add_generate(app, run);
  add_inspect(app, run);
  add_eval(app, run);
  add_run(app, run);
  add_watch(app, run);
  add_fuse(app, run);
  add_quantize(app, run);
  add_tune(app, run);
  add_doctor(app, run);
  add_bench(app);
  return program.run(argc, argv, run);
}
