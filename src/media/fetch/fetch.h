// Fetches the bytes of a media URL: data: URLs, file:// under an allowed root, and http(s) if
// allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace valora::media {

struct FetchPolicy {
  // Empty: no file access. Symbolic links are resolved before the check.
  std::string allowed_local_path;
  // Cameras of this machine that streams may read, as /dev/video0.
  std::vector<std::string> video_devices;
  bool allow_http = false;
  // Host names without ports, compared case-insensitively; their addresses are not checked. If
  // empty and allow_http is set: any host with a public address, and errors do not say why a host
  // could not be reached. Redirects are followed only to allowed hosts.
  std::vector<std::string> allowed_hosts;
  bool private_addresses = false;  // do not check the address of any host
  // Use the proxy in http_proxy or https_proxy, which then must check addresses.
  bool use_proxy = false;
  std::chrono::seconds image_timeout{5};
  std::chrono::seconds video_timeout{30};
};

enum class MediaKind { kImage, kVideo };

using Bytes = std::vector<uint8_t>;

// One item for an image or a video file. `data:video/jpeg;base64,f1,f2,…` gives one item per frame.
// kPayloadTooLarge above max_bytes, checked before decoding base64 and during downloads.
// kInvalidArgument if the policy forbids the URL or it cannot be fetched. kCancelled as soon as a
// stop is requested during a download.
Result<std::vector<Bytes>> fetch(const std::string& url, MediaKind kind, size_t max_bytes,
                                 const FetchPolicy& policy, const std::stop_token& stop = {});

// True if fetching the URL waits for another host.
bool is_remote(std::string_view url);

}  // namespace valora::media
