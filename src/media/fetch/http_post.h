// Sends a body by HTTP, under the rules of FetchPolicy.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "media/fetch/fetch.h"

namespace valora::media {

// Follows no redirects; the answer's body is not read. kInvalidArgument if the policy forbids the
// URL, kUnavailable for any status outside 200 … 299 or a failed connection, kCancelled at a stop.
Status http_post(const std::string& url, const std::string& body,
                 const std::vector<std::string>& headers, const FetchPolicy& policy,
                 std::chrono::milliseconds limit, const std::stop_token& stop);

}  // namespace valora::media
