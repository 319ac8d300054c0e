// manifest.json: the adapter and head that answer each task, and their accuracy. `valora fuse`
// writes it, `valora serve --manifest` reads it. Torch-free.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

struct ManifestEntry {
  std::string adapter;              // a folder, relative to the manifest's
  std::optional<std::string> head;  // the adapter's head; absent: the language model answers
  std::string prompt;               // the task's question
  std::string metric;
  std::optional<double> floor, accuracy;
  std::vector<std::string> labels;  // of its answers or boxes; empty: unknown
  std::optional<BoxFormat> boxes;   // for tasks that answer with boxes
};

struct Manifest {
  std::map<std::string, ManifestEntry> tasks;  // by name
};

// {"tasks": {NAME: {"adapter", "head", "prompt", "metric", "floor", "accuracy", "labels", "boxes":
// {"scale", "labels"}}}}. Errors name the file and the task. Adapters are returned as absolute
// paths of existing folders.
Result<Manifest> read_manifest(const std::string& path);
// Writes the file atomically (base/files/write_file.h). Adapters inside the manifest's folder are
// written as relative paths.
Status write_manifest(const Manifest& manifest, const std::string& path);

}  // namespace valora::generator
