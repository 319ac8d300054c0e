// The text that stands for an image in a prompt, of families that write some around its rows
// (models::Family::image_text).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/processor.h"
#include "models/spec/family.h"
#include "models/spec/positions.h"
#include "text/tokenizer.h"

namespace valora::serving {

// Appends the tokens of `text`, in which each placeholder stands for equally many rows of `input`,
// and the rows to `visual`.
Status append_image(int32_t placeholder, const std::string& text,
                    std::shared_ptr<const media::VisualInput> input,
                    const text::Tokenizer& tokenizer, std::vector<int32_t>& tokens,
                    std::vector<models::VisualSpan>& visual);

// That the texts before and after an image become the same tokens around its placeholder as around
// its text: prompts are tokenized before images are read. kUnprocessable names the token.
Status check_image_text(const models::Family& family, const text::Tokenizer& tokenizer,
                        int32_t placeholder);

}  // namespace valora::serving
