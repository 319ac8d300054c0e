// `valora inspect`: checks whether folders of models and adapters can be served, and with --prove
// whether adapters change answers. Exit status 0 if all can and do.
#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include "cli/command.h"
#include "cli/inspect_report.h"
#include "cli/named_folders.h"
#include "cli/options/engine_flags.h"
#include "cli/options/named_option.h"
#include "cli/progress/format.h"
#include "cli/prove_adapters.h"

namespace valora::cli {
namespace {

struct InspectFlags {
  std::vector<std::string> folders;
  std::string model, mmproj;
  std::string prove;  // as `model`, which it replaces
  HubFlags hub;
  ComputeDtype dtype = ComputeDtype::kAuto;
  KvCacheDtype kv_cache_dtype = KvCacheDtype::kAuto;
  adapters::AdapterLimits limits;
  bool json = false;
};

// The exit status of a report that is printed.
int print(const ModelReport& report, bool json) {
  if (json)
    print_json(inspect_json(report));
  else
    std::cout << inspect_text(report);
  return report.problems.empty() ? 0 : 1;
}

int print(const AdapterReport& report, const AdapterProof* proof, bool json) {
  if (json)
    print_json(inspect_json(report, proof));
  else
    std::cout << inspect_text(report, proof);
  if (!report.problems.empty()) return 1;
  return !proof || proof->changes_answers() || !report.spec->heads.empty() ? 0 : 1;
}

int inspect_adapter_folder(const std::string& folder, const InspectFlags& flags,
                           AdapterProver* prover) {
  const AdapterReport report = inspect_adapter(folder, {flags.model, flags.mmproj}, flags.limits);
  if (!prover || !report.problems.empty()) return print(report, nullptr, flags.json);
  const auto proof = prover->prove(report);
  return proof.ok() ? print(report, &*proof, flags.json) : fail(proof.error());
}

int inspect_folder(const std::string& given, const InspectFlags& flags, AdapterProver* prover) {
  const auto found = NamedFolders(flags.hub).either(given);
  if (!found.ok()) return fail(found.error());
  const std::string& folder = *found;
  const auto kind = folder_kind(folder);
  if (!kind.ok()) return fail(kind.error());
  if (*kind == FolderKind::kAdapter) return inspect_adapter_folder(folder, flags, prover);
  if (!flags.model.empty())
    return fail(invalid("--model is for adapters, but " + folder + " is a model"));
  return print(inspect_model({folder, flags.mmproj}, flags.dtype, flags.kv_cache_dtype),
               flags.json);
}

// The revision is that of what is inspected.
Status find_model(InspectFlags& flags) {
  HubFlags hub = flags.hub;
  hub.revision.clear();
  if (flags.model.empty()) return {};
  VALORA_TRY(found, NamedFolders(hub).model(flags.model));
  flags.model = std::move(found.path);
  return {};
}

EngineOptions prover_options(const InspectFlags& flags) {
  EngineOptions options;
  options.model_path = flags.model;
  options.mmproj = flags.mmproj;
  options.dtype = flags.dtype;
  options.kv_cache_dtype = flags.kv_cache_dtype;
  options.max_lora_rank = flags.limits.max_rank;
  return options;
}

int run_inspect(InspectFlags& flags) {
  if (!flags.prove.empty() && !flags.model.empty())
    return fail(invalid("--model and --prove exclude each other: both name the adapters' model"));
  if (!flags.prove.empty()) flags.model = flags.prove;
  if (const Status s = find_model(flags); !s.ok()) return fail(s.error());
  std::unique_ptr<AdapterProver> prover;
  if (!flags.prove.empty()) {
    auto started = AdapterProver::start(prover_options(flags));
    if (!started.ok()) return fail(started.error());
    prover = std::move(started).value();
  }
  int status = 0;
  for (const std::string& folder : flags.folders) {
    if (flags.folders.size() > 1 && !flags.json)
      std::cout << (&folder == flags.folders.data() ? "" : "\n") << folder << ":" << std::endl;
    status = std::max(status, inspect_folder(folder, flags, prover.get()));
  }
  return status;
}

}  // namespace

void add_inspect(Command app, std::function<int()>& run) {
  auto flags = std::make_shared<InspectFlags>();
  Command c = app.add_subcommand(
      "inspect", "Describe folders of models or adapters and check whether they can be served");
  c.add_option("dir", flags->folders, "Models or adapters: folders, GGUF files, or OWNER/NAME")
      .required();
  c.add_option("--model", flags->model, "For adapters: model to check them against");
  c.add_option("--prove", flags->prove,
               "For adapters: as --model, and ask this model a text and a picture with and without "
               "each: prints how the answers differ, and ends with status 1 if an adapter changes "
               "nothing");
  add_mmproj_flag(c, flags->mmproj);
  add_hub_flags(c, flags->hub);
  add_named_option(
      c, "--dtype", flags->dtype, parse_dtype,
      "Data type of a model's weights: auto (the checkpoint's), float32, bfloat16 or float16");
  add_named_option(c, "--kv-cache-dtype", flags->kv_cache_dtype, parse_kv_cache_dtype,
                   "KV cache of a model in auto (the data type), int8 or fp8");
  c.add_option("--max-lora-rank", flags->limits.max_rank, "For an adapter: highest accepted rank")
      .capture_default_str();
  c.add_flag("--json", flags->json, "Print one JSON object per folder");
  c.callback([flags, &run] { run = [flags] { return run_inspect(*flags); }; });
}

}  // namespace valora::cli
