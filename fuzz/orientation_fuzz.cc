#include "media/image/orientation.h"

#include "check.h"
#include "input.h"

using namespace valora;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string_view exif = input.part();
  const int orientation = media::orientation_of(
      {reinterpret_cast<const uint8_t*>(exif.data()), exif.size()}, input.rest());
  media::Image image{3, 2, std::vector<uint8_t>(18)};
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<uint8_t>(i);
  const media::Image turned = media::upright(image, orientation);
  FUZZ_CHECK(turned.width * turned.height == 6 && turned.rgb.size() == image.rgb.size());
  std::vector<int> seen(18);
  for (const uint8_t byte : turned.rgb) ++seen[byte];
  for (const int times : seen) FUZZ_CHECK(times == 1);
  return 0;
}
