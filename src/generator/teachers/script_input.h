// Converts pictures to the input of a TorchScript file.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// kInvalidArgument unless sizes, mean and deviation fit together.
Status check_input(const TeacherSource& teacher);

// fp32 [samples, channels, height, width]: each sample's picture, resized to exactly the teacher's
// size (PIL's bicubic, ignoring the aspect ratio), greyscale (PIL's L) if there is one channel,
// scaled to 0 … 1, then (x - mean) / deviation. Errors name the sample's origin if it does not have
// exactly one picture, or its picture is broken.
Result<at::Tensor> script_input(const TeacherSource& teacher, std::span<const Sample> samples);

}  // namespace valora::generator
