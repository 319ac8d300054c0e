// `valora inspect`: checks whether a model or adapter folder can be served. Exit status 0 if it
// can.
#include <iostream>

#include "cli/command.h"
#include "cli/format.h"
#include "cli/inspect_report.h"
#include "cli/named_option.h"

namespace valora::cli {
namespace {

struct InspectFlags {
  std::string dir, model;
  ComputeDtype dtype = ComputeDtype::kAuto;
  adapters::AdapterLimits limits;
  bool json = false;
};

template <typename Report>
int print(const Report& report, bool json) {
  if (json)
    print_json(inspect_json(report));
  else
    std::cout << inspect_text(report);
  return report.problems.empty() ? 0 : 1;
}

int run_inspect(const InspectFlags& flags) {
  const auto kind = folder_kind(flags.dir);
  if (!kind.ok()) return fail(kind.error());
  if (*kind == FolderKind::kAdapter)
    return print(inspect_adapter(flags.dir, flags.model, flags.limits), flags.json);
  if (!flags.model.empty())
    return fail(invalid("--model is for adapters, but " + flags.dir + " is a model"));
  return print(inspect_model(flags.dir, flags.dtype), flags.json);
}

}  // namespace

void add_inspect(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<InspectFlags>();
  Command c = app.add_subcommand(
      "inspect", "Describe a model or adapter folder and check whether it can be served");
  c.add_option("dir", flags->dir, "Folder of the model or adapter").required();
  c.add_option("--model", flags->model, "For an adapter: model folder to check it against");
  add_named_option(
      c, "--dtype", flags->dtype, parse_dtype,
      "For a model: data type of weights, auto (the checkpoint's), float32, bfloat16 or float16");
  c.add_option("--max-lora-rank", flags->limits.max_rank, "For an adapter: highest accepted rank")
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object");
  c.callback([flags, &run] { run = [flags] { return run_inspect(*flags); }; });
}

}  // namespace valora::cli
