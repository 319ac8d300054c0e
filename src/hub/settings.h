// Where names are looked up: the caches, and the server that is asked for what they lack.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace valora::hub {

struct HubSettings {
  std::string cache;                                // the folder of models--owner--name
  std::vector<std::string> modelscope;              // folders of owner/name, which ModelScope wrote
  std::string endpoint = "https://huggingface.co";  // without a slash at its end
  std::string token;                                // sent to the endpoint alone; empty: none
  std::string token_source;                         // where it is from, for messages
  std::string certificates;                         // file of certificates; empty: the system's
  std::string no_download;           // what forbids downloads, for messages; empty: nothing does
  std::chrono::seconds silence{30};  // after which a connection counts as lost
};

// A variable of the environment; absent: not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> variable_of_process(const char* name);

// Settings as huggingface_hub takes them from HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HF_ENDPOINT,
// HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE and HF_HUB_DOWNLOAD_TIMEOUT, and ModelScope from
// MODELSCOPE_CACHE. kInvalidArgument names a variable that cannot be used, never its value if that
// is a secret.
Result<HubSettings> settings_of(const Environment& environment);

// A token as it is sent: without white space around it. kInvalidArgument if it cannot be part of a
// header.
Result<std::string> clean_token(std::string token, const std::string& source);

}  // namespace valora::hub
