// Shared source of the targets for pictures, which differ only in their corpora.
#include "check.h"
#include "media/image/image.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const media::Limits limits{.max_bytes = size_t{1} << 18, .max_pixels = int64_t{1} << 16};
  const auto image = media::decode_image({data, size}, limits);
  if (!image.ok()) {
    FUZZ_CHECK(!image.error().message.empty());
    return 0;
  }
  FUZZ_CHECK(image->width > 0 && image->height > 0);
  FUZZ_CHECK(int64_t{image->width} * image->height <= limits.max_pixels);
  FUZZ_CHECK(image->rgb.size() == size_t(image->width) * image->height * 3);
  return 0;
}
