// Loads adapters on first use. An unknown adapter name is looked up as a subfolder of one
// directory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/engine.h"
#include "base/result.h"

namespace valora::server {

// Owned by shared_ptr, because a load may outlive the server. Thread-safe.
class AdapterResolver : public std::enable_shared_from_this<AdapterResolver> {
 public:
  using Done = std::function<void(Status)>;

  AdapterResolver(std::string directory, std::vector<std::string> base_names, Engine& engine)
      : directory_(std::move(directory)), base_names_(std::move(base_names)), engine_(engine) {}

  // The names in `uses` that have a folder, are not loaded and cannot be confused with the base
  // model. The engine reports other unknown names.
  std::vector<std::string> missing(const std::vector<AdapterUse>& uses) const;
  // Loads the adapters one after another. Calls `done` once, on the calling thread or on an engine
  // thread, with kInvalidArgument if a folder cannot be loaded. The caller may ignore that error if
  // another request has loaded the adapter in the meantime.
  void load(std::vector<std::string> names, Done done);

 private:
  void load_one(const std::string& name, Done done);
  void loaded(const std::string& name, const Status& status);

  const std::string directory_;  // empty: disabled
  const std::vector<std::string> base_names_;
  Engine& engine_;
  std::mutex mutex_;
  // by adapter name; concurrent requests share one load
  std::map<std::string, std::vector<Done>> loading_;
};

// A plain folder name: no separators, no leading dot, no control characters.
bool safe_folder_name(std::string_view name);

}  // namespace valora::server
