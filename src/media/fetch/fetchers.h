// Implementations of fetch(), one per URL scheme. `rest` is the URL after the scheme and colon.
#pragma once

#include "media/fetch/fetch.h"

namespace valora::media {

Error too_large(MediaKind kind, size_t max_bytes);
const char* kind_name(MediaKind kind);

Result<std::vector<Bytes>> fetch_data(std::string_view rest, MediaKind kind, size_t max_bytes);
Result<Bytes> fetch_file(std::string_view rest, MediaKind kind, size_t max_bytes,
                         const FetchPolicy& policy);
Result<Bytes> fetch_http(const std::string& url, MediaKind kind, size_t max_bytes,
                         const FetchPolicy& policy, const std::stop_token& stop);

}  // namespace valora::media
