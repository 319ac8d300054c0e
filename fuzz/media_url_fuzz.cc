// Media URLs of requests: data: URLs, and file:// URLs. Only files in one folder may be read, not
// the secret file next to it.
#include <filesystem>

#include "base/text/base64.h"
#include "base/video.h"
#include "check.h"
#include "media/fetch/fetch.h"
#include "temp_folder.h"

using namespace valora;

namespace {

constexpr size_t kMaxBytes = 1024;

struct Files {
  Files() : dir(fuzz::temp_folder()) {
    std::filesystem::create_directory(dir.file("open"));
    dir.write("open/a.png", "inside");
    dir.write("secret", "secret");
    std::filesystem::create_symlink("../secret", dir.file("open/link"));
  }
  const testing::TempDir& dir;
};

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(c);
    for (count += 8; count >= 6; count -= 6) out += kAlphabet[bits >> (count - 6) & 63];
  }
  if (count > 0) out += kAlphabet[bits << (6 - count) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// "FILES" in a URL stands for the allowed folder.
std::string with_folder(std::string url, const std::string& folder) {
  const size_t at = url.find("FILES");
  return at == url.npos ? url : url.replace(at, 5, folder);
}

void check_fetch(const std::string& url, media::MediaKind kind, const media::FetchPolicy& policy) {
  const auto items = media::fetch(url, kind, kMaxBytes, policy);
  if (!items.ok()) {
    FUZZ_CHECK(!items.error().message.empty());
    return;
  }
  FUZZ_CHECK(!items->empty() && (items->size() == 1 || is_frame_list(url)));
  size_t total = 0;
  for (const media::Bytes& item : *items) {
    FUZZ_CHECK(!item.empty());
    total += item.size();
    if (url.starts_with("file:")) FUZZ_CHECK(std::string(item.begin(), item.end()) == "inside");
  }
  FUZZ_CHECK(total <= kMaxBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Files files;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const media::FetchPolicy policy{.allowed_local_path = files.dir.file("open")};
  const std::string url = with_folder(std::string(text), files.dir.path());
  for (const auto kind : {media::MediaKind::kImage, media::MediaKind::kVideo})
    check_fetch(url, kind, policy);

  const auto decoded = decode_base64(text);
  if (decoded.ok()) FUZZ_CHECK(decoded->size() <= size);
  const auto again = decode_base64(to_base64(text));
  FUZZ_CHECK(again.ok() &&
             std::string_view(reinterpret_cast<const char*>(again->data()), again->size()) == text);
  return 0;
}
