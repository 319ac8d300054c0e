// The options of an engine and its models on the command line.
#pragma once

#include <string>

#include "api/options.h"
#include "cli/options/parser.h"

namespace valora::cli {

// Options for the rounding of weights, inputs and KV, and for ranks: the engine options that change
// what steps cost.
void add_quantization_flag(Command command, EngineOptions& options);
void add_rounding_flags(Command command, EngineOptions& options);
void add_rank_flags(Command command, EngineOptions& options);
void add_mmproj_flag(Command command, std::string& mmproj);
// Options shared by all commands with an engine: model, dtype, device, kernels, policy, threads,
// lengths, memory, and the options above.
void add_engine_flags(Command command, EngineOptions& options, bool model_required = true);

// Options about models and adapters that are given by name.
struct HubFlags {
  std::string revision;      // of the base model
  std::string download_dir;  // instead of the environment's cache
  std::string token;         // instead of the environment's
  bool no_download = false;
};

// --no-download, --download-dir and --hf-token; also --revision, for commands with one base model.
void add_hub_flags(Command command, HubFlags& flags, bool revision = true);

}  // namespace valora::cli
