// Loads adapters on first use. An unknown adapter name is looked up as a subfolder of one
// directory. A folder whose files have changed since is loaded again.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/files/folder_snapshot.h"
#include "base/result.h"

namespace valora::server {

// Owned by shared_ptr, because a load may outlive the server. Thread-safe.
class AdapterResolver : public std::enable_shared_from_this<AdapterResolver> {
 public:
  using Done = std::function<void(Status)>;

  AdapterResolver(std::string directory, std::vector<std::string> base_names, Engine& engine)
      : directory_(std::move(directory)), base_names_(std::move(base_names)), engine_(engine) {}

  // The names in `uses` that have a folder and cannot be confused with the base model, and are not
  // loaded, or were loaded here before their folder changed. The engine reports other unknown
  // names.
  std::vector<std::string> missing(const std::vector<AdapterUse>& uses) const;
  // Loads the adapters one after another. Calls `done` once, on the calling thread or on an engine
  // thread, with kInvalidArgument if a folder cannot be loaded, or kConflict if it is being
  // written; its name is then not loaded any more. The caller may ignore the error if another
  // request has loaded the adapter in the meantime.
  void load(std::vector<std::string> names, Done done);

 private:
  // An adapter that was loaded here.
  struct Loaded {
    uint64_t generation = 0;
    FolderSnapshot files;
  };

  // The generation that was loaded here, if the folder has changed since.
  std::optional<uint64_t> outdated(const AdapterCard& card) const;
  void load_one(const std::string& name, Done done);
  void read(const std::string& name);
  void loaded(const std::string& name, const Status& status);

  const std::string directory_;  // empty: disabled
  const std::vector<std::string> base_names_;
  Engine& engine_;
  mutable std::mutex mutex_;
  // by adapter name; concurrent requests share one load
  std::map<std::string, std::vector<Done>> loading_;
  std::map<std::string, Loaded> loaded_;
};

// A plain folder name: no separators, no leading dot, no control characters.
bool safe_folder_name(std::string_view name);

}  // namespace valora::server
