// manifest.json: which adapter and head answers a task, and how well (`valora fuse` writes it,
// `valora serve --manifest` loads it). Torch-free.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"

namespace valora::generator {

struct ManifestEntry {
  std::string adapter;              // folder; relative ones start from the manifest's
  std::optional<std::string> head;  // of the adapter; none: the language model answers
  std::string prompt;               // the question that the task is asked with
  std::string metric;
  std::optional<double> floor, accuracy;
};

struct Manifest {
  std::map<std::string, ManifestEntry> tasks;  // by name
};

// {"tasks": {NAME: {"adapter", "head", "prompt", "metric", "floor", "accuracy"}}}. Errors name the
// file and the task. Adapters come back as absolute paths of folders that exist.
Result<Manifest> read_manifest(const std::string& path);
// Written beside, then renamed: never half a file. Adapters below the manifest's folder are written
// relative to it.
Status write_manifest(const Manifest& manifest, const std::string& path);

}  // namespace valora::generator
