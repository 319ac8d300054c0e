// The text that stands for an image or video in a prompt, of families that write some around its
// rows (models::Family::media_text).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/processor.h"
#include "models/spec/family.h"
#include "models/spec/positions.h"
#include "text/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct MediaText {
  int32_t placeholder = 0;
  std::string text;  // in which each placeholder stands for equally many rows
  std::shared_ptr<const media::VisualInput> input;
};

// Appends the tokens of an image's text to `tokens`, and its rows to `visual`.
Status append_image(const MediaText& image, const text::Tokenizer& tokenizer,
                    std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual);
// The same for a video, whose text may begin and end with words, which are one text with what
// stands before and behind it. behind: the tokens up to the next added one; they are appended too.
// Errors: ContentMarks::apply().
Status append_video_text(const MediaText& video, std::span<const int32_t> behind,
                         const text::Tokenizer& tokenizer, const text::ContentMarks& content_marks,
                         std::vector<int32_t>& tokens, std::vector<models::VisualSpan>& visual);

// That the texts before and after an image become the same tokens around its placeholder as around
// its text: prompts are tokenized before images are read. kUnprocessable names the token.
Status check_media_text(const models::Family& family, const text::Tokenizer& tokenizer,
                        int32_t placeholder);

}  // namespace valora::serving
