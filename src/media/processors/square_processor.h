// Resizes every picture to the same square, whatever its aspect ratio.
#pragma once

#include <memory>

#include "media/image/image.h"
#include "media/processors/processor.h"
#include "media/processors/processor_settings.h"

namespace valora::media {

// Rows are patches in reading order. Videos are refused.
std::shared_ptr<const Processor> make_square_processor(const SquareTarget& target, Resample filter,
                                                       const PixelValues& values);

}  // namespace valora::media
