#include "streams/mqtt/mqtt_broker.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "base/files/file.h"

namespace valora::streams {
namespace {

constexpr size_t kMostPrefix = 128, kMostPassword = 4096;
constexpr uint16_t kPlainPort = 1883, kTlsPort = 8883;

using UrlPtr = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, CURLU_URLDECODE) != CURLUE_OK) return {};
  std::string out = text;
  curl_free(text);
  return out;
}

Error bad_url(const std::string& why) {
  return invalid(fmt::format("--mqtt-url {}; it is mqtt[s]://[USER[:PASSWORD]@]HOST[:PORT]", why),
                 "mqtt-url");
}

Status read_url(const std::string& text, MqttBroker& out) {
  const UrlPtr url(curl_url(), curl_url_cleanup);
  if (!url) return internal("libcurl cannot be initialised");
  if (text.find("://") == text.npos ||
      curl_url_set(url.get(), CURLUPART_URL, text.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return bad_url("is malformed");
  const std::string scheme = part_of(url.get(), CURLUPART_SCHEME);
  if (scheme != "mqtt" && scheme != "mqtts") return bad_url("begins with another scheme");
  out.tls = scheme == "mqtts";
  out.port = out.tls ? kTlsPort : kPlainPort;
  out.host = part_of(url.get(), CURLUPART_HOST);
  if (out.host.starts_with('[')) out.host = out.host.substr(1, out.host.size() - 2);
  if (out.host.empty()) return bad_url("has no host");
  const std::string path = part_of(url.get(), CURLUPART_PATH);
  if ((!path.empty() && path != "/") || text.find_first_of("?#") != text.npos)
    return bad_url("has more than a host");
  if (const std::string port = part_of(url.get(), CURLUPART_PORT); !port.empty()) {
    const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (fault != std::errc() || out.port == 0) return bad_url("has no such port");
  }
  out.user = part_of(url.get(), CURLUPART_USER);
  out.password = part_of(url.get(), CURLUPART_PASSWORD);
  return {};
}

Status check_prefix(const std::string& prefix, const char* option) {
  if (prefix.size() > kMostPrefix || prefix.starts_with('/') || prefix.ends_with('/') ||
      prefix.starts_with('$') || prefix.find_first_of("+# \t\n") != prefix.npos)
    return invalid(fmt::format("--{} must be levels of a topic, such as home/valora", option),
                   option);
  return {};
}

}  // namespace

std::string MqttBroker::address() const {
  const bool ipv6 = host.find(':') != host.npos;
  return fmt::format("{}{}{}:{}", ipv6 ? "[" : "", host, ipv6 ? "]" : "", port);
}

Result<MqttBroker> read_mqtt_settings(const MqttSettings& settings) {
  MqttBroker out;
  VALORA_CHECK(read_url(settings.url, out));
  if (out.password.empty()) out.password = settings.password;
  if (!settings.password_file.empty()) {
    VALORA_TRY(text, read_file(settings.password_file, kMostPassword));
    out.password = text.substr(0, text.find_first_of("\r\n"));
  }
  if (out.user.empty() && !settings.password_file.empty())
    return bad_url("needs the user of the password");
  if (out.user.empty()) out.password.clear();
  if (!settings.ca_file.empty() && !out.tls)
    return invalid("--mqtt-ca-file needs a URL that begins with mqtts://", "mqtt-ca-file");
  if (!settings.ca_file.empty() && !file_exists(settings.ca_file))
    return not_found(settings.ca_file + " is not there", "mqtt-ca-file");
  out.ca_file = settings.ca_file;
  if (settings.topic_prefix.empty())
    return invalid("--mqtt-topic-prefix is empty", "mqtt-topic-prefix");
  VALORA_CHECK(check_prefix(settings.topic_prefix, "mqtt-topic-prefix"));
  VALORA_CHECK(check_prefix(settings.discovery_prefix, "mqtt-discovery-prefix"));
  out.topic_prefix = settings.topic_prefix;
  out.discovery_prefix = settings.discovery_prefix;
  return out;
}

}  // namespace valora::streams
