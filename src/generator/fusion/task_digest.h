// Identifies the data of a task by content, media included, so that a later run notices what has
// changed.
#pragma once

#include <functional>
#include <span>
#include <stop_token>

#include "base/digest.h"
#include "base/result.h"
#include "generator/data/sample.h"
#include "generator/train/example.h"

namespace valora::generator {

// What is trained: texts, labels and boxes, the tokens of the prompts, and the prepared media.
void add_training(DigestBuilder& builder, std::span<const Sample> samples,
                  std::span<const Example> examples);
// The same of samples that are not prepared. Reads each media file once, on `threads` threads.
// kCancelled if a stop is requested. progress: calls never overlap.
Status add_validation(DigestBuilder& builder, std::span<const Sample> samples, int threads,
                      const std::function<void(int done, int total)>& progress,
                      const std::stop_token& stop);

}  // namespace valora::generator
