// The rules of FetchPolicy for HTTP, which every request through libcurl keeps.
#pragma once

#include <curl/curl.h>
#include <sys/socket.h>

#include <stop_token>
#include <string>

#include "media/fetch/fetch.h"

namespace valora::media {

void init_curl_once();
// kInvalidArgument for a malformed URL, or one whose host is not allowed.
Status check_host(const std::string& url, const FetchPolicy& policy);
// True if only hosts with public addresses may be reached.
bool public_only(const FetchPolicy& policy);
// Sets the options that every request has: no redirects of libcurl's own, HTTP alone, proxies as
// the policy says, public addresses if it wants them. private_address: set if a connection was
// refused for its address; must outlive the handle.
void keep_rules(CURL* curl, const FetchPolicy& policy, bool* private_address);
// Like curl_easy_perform(), but returns CURLE_ABORTED_BY_CALLBACK as soon as a stop is requested.
CURLcode perform(CURLM* multi, CURL* curl, const std::stop_token& stop);

// Tells public addresses from others: false for loopback, private, link-local, shared, multicast
// and reserved addresses (IANA's special-purpose registries), for IPv6 addresses that embed one,
// and for other address families.
bool is_public(const sockaddr& address);

}  // namespace valora::media
