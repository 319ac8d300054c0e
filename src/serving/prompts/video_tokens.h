// The tokens of a video in which each temporal patch follows its timestamp.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "media/processors/processor.h"
#include "models/spec/model_spec.h"
#include "models/spec/positions.h"
#include "text/chat/content_marks.h"
#include "text/tokenizer.h"

namespace valora::serving {

struct VideoPlace {
  int32_t placeholder = 0;  // the token that represents a row
  models::ModelSpec::FrameMarks marks;
  std::shared_ptr<const media::VisualInput> input;  // has patch_times
};

// Appends, for each temporal patch, "<1.5 seconds>", its begin mark, its rows and its end mark to
// `tokens`, and its rows to `visual`. The tokenizer sees the first timestamp and the preceding text
// as one text, so the tokens after the last added one are encoded again with it. Errors:
// ContentMarks::apply().
Status append_video(const VideoPlace& video, const text::Tokenizer& tokenizer,
                    const text::ContentMarks& content_marks, std::vector<int32_t>& tokens,
                    std::vector<models::VisualSpan>& visual);

}  // namespace valora::serving
