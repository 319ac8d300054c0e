// Options about models and adapters that are given by name.
#pragma once

#include <string>

#include "cli/options/parser.h"

namespace valora::cli {

struct HubFlags {
  std::string revision;      // of the base model
  std::string download_dir;  // instead of the environment's cache
  std::string token;         // instead of the environment's
  bool no_download = false;
};

// --no-download, --download-dir and --hf-token; also --revision, for commands with one base model.
void add_hub_flags(Command command, HubFlags& flags, bool revision = true);

}  // namespace valora::cli
