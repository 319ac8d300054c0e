// `valora inspect`: checks whether folders of models and adapters can be served. Exit status 0 if
// all can.
#include <algorithm>
#include <iostream>
#include <vector>

#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/options/named_option.h"
#include "cli/progress/format.h"

namespace valora::cli {
namespace {

struct InspectFlags {
  std::vector<std::string> folders;
  std::string model;
  ComputeDtype dtype = ComputeDtype::kAuto;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::kAuto;
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

int inspect_folder(const std::string& folder, const InspectFlags& flags) {
  const auto kind = folder_kind(folder);
  if (!kind.ok()) return fail(kind.error());
  if (*kind == FolderKind::kAdapter)
    return print(inspect_adapter(folder, flags.model, flags.limits), flags.json);
  if (!flags.model.empty())
    return fail(invalid("--model is for adapters, but " + folder + " is a model"));
  return print(inspect_model(folder, flags.dtype, flags.kv_cache_dtype), flags.json);
}

int run_inspect(const InspectFlags& flags) {
  int status = 0;
  for (const std::string& folder : flags.folders) {
    if (flags.folders.size() > 1 && !flags.json)
      std::cout << (&folder == flags.folders.data() ? "" : "\n") << folder << ":" << std::endl;
    status = std::max(status, inspect_folder(folder, flags));
  }
  return status;
}

}  // namespace

void add_inspect(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<InspectFlags>();
  Command c = app.add_subcommand(
      "inspect", "Describe folders of models or adapters and check whether they can be served");
  c.add_option("dir", flags->folders, "Folders of models or adapters").required();
  c.add_option("--model", flags->model, "For adapters: model folder to check them against");
  add_named_option(
      c, "--dtype", flags->dtype, parse_dtype,
      "For a model: data type of weights, auto (the checkpoint's), float32, bfloat16 or float16");
  add_named_option(c, "--kv-cache-dtype", flags->kv_cache_dtype, parse_kv_cache_dtype,
                   "For a model: KV cache in auto (the data type), int8 or fp8");
  c.add_option("--max-lora-rank", flags->limits.max_rank, "For an adapter: highest accepted rank")
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object per folder");
  c.callback([flags, &run] { run = [flags] { return run_inspect(*flags); }; });
}

}  // namespace valora::cli
