#include "media/library_versions.h"

#include <stdio.h>  // before jpeglib.h, which uses FILE

#include <avif/avif.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <jpeglib.h>
#include <libheif/heif.h>
#include <png.h>
#include <tiffio.h>
#include <webp/demux.h>

extern "C" {
#include <libavutil/avutil.h>
}

namespace valora::media {
namespace {

// "LIBTIFF, Version 4.5.0\nCopyright …" → "4.5.0"
std::string tiff_version() {
  const std::string text = TIFFGetVersion();
  const std::string line = text.substr(0, text.find('\n'));
  return line.substr(line.rfind(' ') + 1);
}

std::string webp_version() {
  const int packed = WebPGetDemuxVersion();
  return fmt::format("{}.{}.{}", packed >> 16, (packed >> 8) & 255, packed & 255);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> library_versions() {
  return {{"curl", curl_version()},
          {"FFmpeg", av_version_info()},
          {"libavif", avifVersion()},
          {"libheif", heif_get_version()},
          {"libjpeg", fmt::format("API {}", JPEG_LIB_VERSION)},
          {"libpng", png_get_libpng_ver(nullptr)},
          {"libtiff", tiff_version()},
          {"libwebp", webp_version()}};
}

}  // namespace valora::media
