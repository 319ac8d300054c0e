#include "hub/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/files/file.h"
#include "base/text/strings.h"
#include "base/text/visible_text.h"

namespace valora::hub {
namespace {

constexpr size_t kMostTokenBytes = 4096;

std::string value_of(const Environment& environment, const char* name) {
  return environment(name).value_or("");
}

bool is_true(const std::string& value) {
  const std::string lower = lower_case(value);
  return lower == "1" || lower == "on" || lower == "yes" || lower == "true";
}

// "~" is the home folder.
std::string expanded(const std::string& path, const std::string& home) {
  return path == "~" || path.starts_with("~/") ? home + path.substr(1) : path;
}

Result<std::string> endpoint_of(const Environment& environment) {
  std::string endpoint = value_of(environment, "HF_ENDPOINT");
  if (endpoint.empty()) return HubSettings().endpoint;
  while (endpoint.ends_with("/")) endpoint.pop_back();
  if (!(endpoint.starts_with("https://") || endpoint.starts_with("http://")) ||
      endpoint.find_first_of(" ?#@\\") != std::string::npos || has_hidden_characters(endpoint))
    return invalid("HF_ENDPOINT must be a URL such as https://huggingface.co");
  return endpoint;
}

Status read_token(const Environment& environment, const std::string& hf_home,
                  const std::string& home, HubSettings& settings) {
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    VALORA_TRY(token, clean_token(value_of(environment, name), name));
    if (token.empty()) continue;
    settings.token = std::move(token);
    settings.token_source = name;
    return {};
  }
  std::string path = expanded(value_of(environment, "HF_TOKEN_PATH"), home);
  if (path.empty()) path = hf_home + "/token";
  const auto text = read_file(path, kMostTokenBytes);
  if (!text.ok()) return {};  // as huggingface_hub does
  VALORA_TRY(token, clean_token(*text, path));
  settings.token = std::move(token);
  settings.token_source = path;
  return {};
}

// ModelScope has had its models in several places.
std::vector<std::string> modelscope_folders(const Environment& environment,
                                            const std::string& home) {
  std::string root = expanded(value_of(environment, "MODELSCOPE_CACHE"), home);
  if (root.empty()) root = home + "/.cache/modelscope/hub";
  return {root + "/models", root, root + "/hub/models", root + "/hub"};
}

std::string certificates_of(const Environment& environment) {
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (std::string file = value_of(environment, name); !file.empty()) return file;
  return {};
}

}  // namespace

std::optional<std::string> variable_of_process(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<std::string> clean_token(std::string token, const std::string& source) {
  constexpr const char* kSpace = " \t\r\n";
  token.erase(token.find_last_not_of(kSpace) + 1);
  token.erase(0, token.find_first_not_of(kSpace));
  const auto printable = [](unsigned char c) { return c > 0x20 && c < 0x7F; };
  if (token.size() > kMostTokenBytes || !std::ranges::all_of(token, printable))
    return invalid("the token of " + source + " is not one: it has spaces or other characters");
  return token;
}

Result<HubSettings> settings_of(const Environment& environment) {
  HubSettings settings;
  const std::string home = value_of(environment, "HOME");
  const std::string xdg = value_of(environment, "XDG_CACHE_HOME");
  std::string hf_home = expanded(value_of(environment, "HF_HOME"), home);
  if (hf_home.empty()) hf_home = (xdg.empty() ? home + "/.cache" : xdg) + "/huggingface";
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (settings.cache.empty()) settings.cache = expanded(value_of(environment, name), home);
  if (settings.cache.empty()) settings.cache = hf_home + "/hub";
  settings.modelscope = modelscope_folders(environment, home);
  VALORA_TRY(endpoint, endpoint_of(environment));
  settings.endpoint = std::move(endpoint);
  VALORA_CHECK(read_token(environment, hf_home, home, settings));
  settings.certificates = certificates_of(environment);
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
    if (settings.no_download.empty() && is_true(value_of(environment, name)))
      settings.no_download = name;
  const std::string silence = value_of(environment, "HF_HUB_DOWNLOAD_TIMEOUT");
  int64_t seconds = 0;
  const auto read = std::from_chars(silence.data(), silence.data() + silence.size(), seconds);
  if (read.ec == std::errc() && seconds > 0 && seconds <= 3600)
    settings.silence = std::chrono::seconds(seconds);
  return settings;
}

}  // namespace valora::hub
