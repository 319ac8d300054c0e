#include "media/fetch/http_post.h"

#include <fmt/format.h>

#include <memory>

#include "media/fetch/http_rules.h"
#include "media/video/stop.h"

namespace valora::media {
namespace {

size_t drop(const char*, size_t, size_t count, void*) { return count; }

Error not_sent(std::string why) { return {ErrorCode::kUnavailable, std::move(why), {}}; }

}  // namespace

Status http_post(const std::string& url, const std::string& body,
                 const std::vector<std::string>& headers, const FetchPolicy& policy,
                 std::chrono::milliseconds limit, const std::stop_token& stop) {
  if (!policy.allow_http) return invalid("http URLs are off: set --allow-media-urls to allow them");
  VALORA_CHECK(check_host(url, policy));
  init_curl_once();
  const std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)> multi(curl_multi_init(),
                                                                    curl_multi_cleanup);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  if (!multi || !curl) return internal("libcurl cannot be initialised");
  bool private_address = false;
  keep_rules(curl.get(), policy, &private_address);
  curl_slist* list = nullptr;
  for (const std::string& header : headers) list = curl_slist_append(list, header.c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> owned(list,
                                                                          curl_slist_free_all);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, drop);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
  const CURLcode code = perform(multi.get(), curl.get(), stop);
  VALORA_CHECK(check_stop(stop));
  if (private_address) return invalid("the host has no public address");
  if (code != CURLE_OK) return not_sent(curl_easy_strerror(code));
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status < 200 || status > 299) return not_sent(fmt::format("the host answered {}", status));
  return {};
}

}  // namespace valora::media
