// Loads adapters on first use: an unknown name is tried as a folder of that name under one
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

// Shared, because a load may end after the server.
class AdapterResolver : public std::enable_shared_from_this<AdapterResolver> {
 public:
  using Done = std::function<void(Status)>;

  AdapterResolver(std::string directory, Engine& engine)
      : directory_(std::move(directory)), engine_(engine) {}

  // The names that have a folder and are not loaded; others are left to the engine.
  std::vector<std::string> missing(const std::vector<AdapterUse>& uses) const;
  // `done` comes once, perhaps within the call, perhaps on an engine thread. kInvalidArgument: a
  // folder that can't be loaded, which is no matter when the adapter has come by another way
  // meanwhile.
  void load(std::vector<std::string> names, Done done);

 private:
  void load_one(const std::string& name, Done done);
  void loaded(const std::string& name, const Status& status);

  const std::string directory_;  // empty: off
  Engine& engine_;
  std::mutex mutex_;
  std::map<std::string, std::vector<Done>> loading_;  // by name: one load serves all that wait
};

// A plain folder name: no separators, no leading dot, no control characters.
bool safe_folder_name(std::string_view name);

}  // namespace valora::server
