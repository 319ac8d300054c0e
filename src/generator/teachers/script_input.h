// Pictures as a TorchScript file wants them.
#pragma once

#include <ATen/ATen.h>

#include <span>

#include "base/result.h"
#include "generator/data/task.h"

namespace valora::generator {

// Sizes, mean and deviation that fit together, or kInvalidArgument.
Status check_input(const TeacherSource& teacher);

// fp32 [samples, channels, height, width]: each sample's picture, resized to exactly the teacher's
// size as PIL does (bicubic, without regard to the sides' proportion), grey (PIL's L) where it has
// one channel, 0 … 1, then (x - mean) / deviation. Errors name the sample's origin: it has no
// single picture, or a broken one.
Result<at::Tensor> script_input(const TeacherSource& teacher, std::span<const Sample> samples);

}  // namespace valora::generator
