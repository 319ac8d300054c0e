// Turns a name into a folder: one of the caches', or a new one that is loaded into Hugging Face's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "hub/client/downloader.h"
#include "hub/kind.h"
#include "hub/settings.h"

namespace valora::hub {

// What is about to be loaded.
struct DownloadPlan {
  std::string name;    // owner/name[/file][@revision]
  std::string commit;  // is_commit()
  std::string cache;   // where to
  size_t files = 0;
  uint64_t bytes = 0;    // of all files
  uint64_t missing = 0;  // that have to come over the network
  uint64_t weights = 0;  // bytes of tensors
  uint64_t free = 0;     // on the disk of the cache
};

struct HubEvents {
  std::function<void(const DownloadPlan&)> plan;  // before the first large file
  std::function<void(const DownloadProgress&)> progress;
  std::function<void(const DownloadPlan&)> loaded;
};

struct Resolved {
  std::string path;  // a folder, or a file
  std::string id;    // owner/name; empty: the text was a path
};

// text: a path, or a name (hub_name.h). A path that exists wins. Text that is neither is returned
// as a path, for whoever opens it to say what is wrong. Otherwise errors are one sentence:
// kNotFound (no such name, or nothing local and settings.no_download), kUnauthorized (gated,
// forbidden), kUnprocessable (nothing in it that is read, a wrong hash), kUnavailable (no network,
// no room).
Result<Resolved> resolve(const std::string& text, Kind kind, const HubSettings& settings,
                         const HubEvents& events);

}  // namespace valora::hub
