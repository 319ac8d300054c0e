// The positions of a prompt's tokens, and the images and videos among them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "media/processors/processor.h"
#include "models/spec/model_spec.h"

namespace valora::models {

// Adjacent prompt tokens that hold the rows of a visual input: all of them, one of its parts, or
// one temporal patch if the prompt has text between the frames of a video.
struct VisualSpan {
  int token_begin = 0;
  int rows = 0;  // equal to the number of tokens
  std::shared_ptr<const media::VisualInput> input;
  int first_row = 0;  // in the input; 0 in its first span
  int part = -1;      // the whole part that it shows (VisualInput::parts); -1: not cut by parts

  // The input that is encoded for these rows, and their first row in its embeddings.
  const std::shared_ptr<const media::VisualInput>& encoded() const {
    return part < 0 ? input : input->parts[static_cast<size_t>(part)];
  }
  int encoded_row() const { return part < 0 ? first_row : 0; }

  bool overlaps(int begin, int end) const {
    return token_begin < end && token_begin + rows > begin;
  }
};

// The positions of a sequence's prompt tokens and generated tokens.
struct Positions {
  std::vector<int32_t> prompt;  // [axes][tokens]
  int32_t delta = 0;  // the token with index i ≥ prompt length has position i + delta on each axis
};

// The sequence length that determines the rotary frequencies in a pass over these positions (any
// axes): the largest position + 1.
int64_t length_of(std::span<const int32_t> positions);

// Positions 0, 1, 2, … on every axis, for text.
Positions text_positions(int tokens, int axes);

// M-RoPE positions (transformers: get_rope_index of Qwen2VLModel, Qwen2_5_VLModel, Qwen3VLModel).
// Positions on three axes (t, h, w). Text advances all three together. The span of a visual input
// extends over (t, h, w) from its starting position, and the next token continues after its largest
// position. If spec.time_positions_per_second is set, a video's temporal axis counts time
// (Qwen2.5-VL) instead of temporal patches.
Positions mrope_positions(const ModelSpec& spec, int tokens, std::span<const VisualSpan> visual);

}  // namespace valora::models
