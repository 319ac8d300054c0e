// The text of an image or video in a prompt, for families that surround its rows with text
// (models::Family::media_text).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/processors/processor.h"
#include "models/spec/family.h"
#include "models/spec/positions.h"
#include "text/chat/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct MediaText {
  int32_t placeholder = 0;
  std::string text;  // each placeholder in it represents an equal number of rows
  std::shared_ptr<const media::VisualInput> input;
};

// Appends an image's tokens to `tokens` and its rows to `visual`.
Status append_image(const MediaText& image, const text::Tokenizer& tokenizer,
                    std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual);
// The same for a video. Its text may begin and end with words, which must be tokenized together
// with the adjacent text. behind: the tokens up to the next added one; they are appended, too.
// Errors: ContentMarks::apply().
Status append_video_text(const MediaText& video, std::span<const int32_t> behind,
                         const text::Tokenizer& tokenizer, const text::ContentMarks& content_marks,
                         std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual);

// Checks that the text around an image is tokenized the same next to its placeholder as next to its
// full text, because prompts are tokenized before images are read. kUnprocessable names the token.
Status check_media_text(const models::Family& family, const text::Tokenizer& tokenizer,
                        int32_t placeholder);

}  // namespace valora::serving
