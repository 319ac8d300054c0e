#include "hub/client/hub_client.h"

#include <fmt/format.h>

#include <charconv>
#include <thread>

#include "base/text/percent.h"
#include "hub/client/refusals.h"
#include "hub/client/retries.h"

namespace valora::hub {
namespace {

constexpr size_t kMostListingBytes = size_t{32} << 20;
constexpr std::chrono::seconds kAnswerLimit{60};

// The value of an ETag: without the marks of weakness and quotation.
std::string plain_etag(std::string etag) {
  if (etag.starts_with("W/")) etag.erase(0, 2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return etag;
}

std::optional<uint64_t> size_in(const Reply& reply) {
  for (const char* name : {"x-linked-size", "content-length"}) {
    const std::string text = reply.header(name);
    uint64_t size = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), size);
    if (read.ec == std::errc() && !text.empty() && size <= INT64_MAX) return size;
  }
  return {};
}

}  // namespace

std::string file_url(const HubSettings& settings, const HubName& name, const std::string& commit,
                     const std::string& file) {
  return fmt::format("{}/{}/resolve/{}/{}", settings.endpoint, name.id(), commit,
                     percent_encoded(file));
}

HubClient::Answer HubClient::ask_once(std::string url, bool head) {
  Answer answer;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    answer.body.clear();
    Request request{.url = url, .head = head, .limit = kAnswerLimit};
    request.take = [&answer](std::string_view bytes) {
      if (bytes.size() > kMostListingBytes - answer.body.size()) return false;
      answer.body += bytes;
      return true;
    };
    transfer_.prepare(std::move(request));
    answer.reply = transfer_.reply(curl_easy_perform(transfer_.handle()));
    // The redirect of a file to where its bytes are has the headers that are asked for.
    const bool elsewhere = !same_origin(answer.reply.redirect, settings_.endpoint);
    if (answer.reply.redirect.empty() || (head && elsewhere)) return answer;
    url = answer.reply.redirect;
  }
  answer.reply.code = CURLE_TOO_MANY_REDIRECTS;
  return answer;
}

HubClient::Answer HubClient::ask(const std::string& url, bool head) {
  Retries retries;
  for (int lost = 0;;) {
    Answer answer = ask_once(url, head);
    const CURLcode code = answer.reply.code;
    // Without a network the user waits for nothing, behind a firewall twice.
    const bool unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT ||
                             code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_WRITE_ERROR ||
                             (code != CURLE_OK && ++lost > 1);
    const auto wait = unreachable ? std::nullopt : retries.after(answer.reply, false);
    if (!wait) return answer;
    std::this_thread::sleep_for(*wait);
  }
}

Result<Listing> HubClient::list(const HubName& name) {
  const std::string url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint,
                                      name.id(), percent_encoded(name.revision_or_main()));
  const Answer answer = ask(url, false);
  if (answer.reply.code != CURLE_OK)
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} cannot be reached: {}", shown_url(settings_.endpoint),
                             reason_of(answer.reply)),
                 {}};
  if (answer.reply.status != 200) return refusal(answer.reply, name, "", settings_);
  return read_listing(answer.body, shown_url(url));
}

Status HubClient::complete(const HubName& name, const std::string& commit, RemoteFile& file) {
  if (file.size && !file.digest.empty()) return {};
  const Answer answer = ask(file_url(settings_, name, commit, file.name), true);
  const Reply& reply = answer.reply;
  const bool answered = reply.code == CURLE_OK && (reply.status == 200 || !reply.redirect.empty());
  if (!answered) return refusal(reply, name, file.name, settings_);
  const std::string linked = reply.header("x-linked-etag");
  file.digest = plain_etag(linked.empty() ? reply.header("etag") : linked);
  file.size = size_in(reply);
  if (!file.size || !is_digest(file.digest))
    return unprocessable(fmt::format("{} does not say the size and hash of {} of {}",
                                     shown_url(settings_.endpoint), file.name, name.id()));
  return {};
}

}  // namespace valora::hub
