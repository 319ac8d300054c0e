#include "base/files/cache_folder.h"

#include <cstdlib>

namespace valora {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string cache_path(const std::string& name) {
  std::string folder = environment("XDG_CACHE_HOME");
  if (folder.empty() && !environment("HOME").empty()) folder = environment("HOME") + "/.cache";
  return folder.empty() ? "" : folder + "/valora/" + name;
}

}  // namespace valora
