// The tokens of a video whose temporal patches stand apart in the prompt, each behind its time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "media/processor.h"
#include "models/spec/model_spec.h"
#include "models/spec/positions.h"
#include "text/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct VideoPlace {
  int32_t placeholder = 0;  // the token that stands for a row
  models::ModelSpec::FrameMarks marks;
  std::shared_ptr<const media::VisualInput> input;  // with its patch_times
};

// Appends per temporal patch "<1.5 seconds>", its begin mark, its rows and its end mark to
// `tokens`, and its rows to `visual`. The first time and the text before it are one text to the
// tokenizer, so the last tokens of `tokens`, behind the last added one, are encoded again with it.
// Errors: ContentMarks::apply().
Status append_video(const VideoPlace& video, const text::Tokenizer& tokenizer,
                    const text::ContentMarks& content_marks, std::vector<int32_t>& tokens,
                    std::vector<models::VisualSpan>& visual);

}  // namespace valora::serving
