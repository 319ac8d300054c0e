// Identifies the data of a task by content, including media, so that a later run notices changes.
#pragma once

#include <functional>
#include <span>
#include <stop_token>

#include "base/digest.h"
#include "base/result.h"
#include "generator/data/sample.h"
#include "generator/train/example.h"

namespace valora::generator {

// Adds what is trained: texts, labels and boxes, prompt tokens, and prepared media.
void add_training(DigestBuilder& builder, std::span<const Sample> samples,
                  std::span<const Example> examples);
// The same for samples that have not been prepared. Reads each media file once, using `threads`
// threads. kCancelled on a stop. progress: calls never overlap.
Status add_validation(DigestBuilder& builder, std::span<const Sample> samples, int threads,
                      const std::function<void(int done, int total)>& progress,
                      const std::stop_token& stop);

}  // namespace valora::generator
