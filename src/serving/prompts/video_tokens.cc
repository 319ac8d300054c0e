#include "serving/prompts/video_tokens.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "serving/prompts/plain_text.h"

namespace valora::serving {
namespace {

// Encodes text that came from ordinary tokens, which must stay ordinary even if it spells special
// tokens.
Result<std::vector<int32_t>> encode_plain(std::string text, const text::Tokenizer& tokenizer,
                                          const text::ContentMarks& content_marks) {
  VALORA_TRY(plain, marked_plain({std::move(text)}, content_marks));
  return tokenizer.encode(plain.texts[0], /*add_special_tokens=*/false, plain.mark);
}

}  // namespace

Status append_video(const VideoPlace& video, const text::Tokenizer& tokenizer,
                    const text::ContentMarks& content_marks, std::vector<int32_t>& tokens,
                    std::vector<models::VisualSpan>& visual) {
  const media::VisualInput& input = *video.input;
  const auto patches = static_cast<int>(input.patch_times.size());
  if (patches != input.grid_t || input.tokens % input.grid_t != 0)
    return internal("the times of a video do not match its temporal patches");
  const int rows = input.tokens / patches;
  std::string before = take_last_text(tokenizer, tokens);
  for (int i = 0; i < patches; ++i) {
    before += fmt::format("<{:.1f} seconds>", input.patch_times[static_cast<size_t>(i)]);
    VALORA_TRY(text, encode_plain(std::move(before), tokenizer, content_marks));
    before.clear();
    tokens.insert(tokens.end(), text.begin(), text.end());
    tokens.push_back(video.marks.begin);
    visual.push_back({static_cast<int>(tokens.size()), rows, video.input, i * rows});
    tokens.insert(tokens.end(), static_cast<size_t>(rows), video.placeholder);
    tokens.push_back(video.marks.end);
  }
  return {};
}

}  // namespace valora::serving
