#include "base/files/file.h"
#include "base/text/base64.h"
#include "generator/evaluator.h"
#include "media/image/image.h"

namespace valora::generator {
namespace {

// "%" starts an escape in file URLs.
std::string file_url(const std::string& path) {
  std::string url = "file://";
  for (const char c : path) c == '%' ? url += "%25" : url += c;
  return url;
}

Result<std::string> frames_url(const std::vector<std::string>& files) {
  const media::Limits limits;
  std::string url = "data:video/jpeg;base64,";
  for (size_t i = 0; i < files.size(); ++i) {
    VALORA_TRY(bytes, read_file(files[i], limits.max_bytes));
    if (bytes.empty()) return invalid(files[i] + " is empty", files[i]);
    if (i > 0) url += ',';
    url += encode_base64(bytes);
  }
  return url;
}

Result<MediaRef> media_ref(const Medium& medium) {
  const bool video = medium.kind == Medium::Kind::kVideo;
  if (medium.files.empty() || (!video && medium.files.size() > 1))
    return invalid(video ? "the video has no files" : "an image must have exactly one file");
  const auto kind = video ? MediaRef::Kind::kVideo : MediaRef::Kind::kImage;
  if (medium.files.size() == 1) return MediaRef{kind, file_url(medium.files.front())};
  VALORA_TRY(url, frames_url(medium.files));
  return MediaRef{kind, std::move(url)};
}

}  // namespace

Result<Prompt> prompt_of(const Sample& sample) {
  ChatMessage user{"user", {}};
  for (const Medium& medium : sample.media) {
    VALORA_TRY(ref, media_ref(medium));
    user.parts.push_back(std::move(ref));
  }
  user.parts.push_back(sample.question);
  ChatPrompt chat;
  chat.messages.push_back(std::move(user));
  return Prompt(std::move(chat));
}

}  // namespace valora::generator
