#include "media/image/encode_jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

namespace valora::media {
namespace {

constexpr int kWholeColours = 90;  // quality from which on colours are not subsampled

struct EncodeError {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void fail_encoding(j_common_ptr info) {
  auto* error = reinterpret_cast<EncodeError*>(info->err);
  info->err->format_message(info, error->message);
  std::longjmp(error->jump, 1);
}

// libjpeg reports errors by longjmp, so its caller has trivial locals only. The buffer is malloc's.
bool write_jpeg(const uint8_t* rgb, int width, int height, int quality, EncodeError& error,
                unsigned char** buffer, unsigned long* bytes) {
  jpeg_compress_struct info;
  info.err = jpeg_std_error(&error.manager);
  error.manager.error_exit = fail_encoding;
  if (setjmp(error.jump)) {
    jpeg_destroy_compress(&info);
    return false;
  }
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, buffer, bytes);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  if (quality >= kWholeColours)
    info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(rgb + size_t{info.next_scanline} * width * 3);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  return true;
}

}  // namespace

Result<std::string> encode_jpeg(const Image& image, int quality) {
  if (image.width < 1 || image.height < 1 ||
      image.rgb.size() != size_t{3} * image.width * image.height)
    return invalid("the picture has no pixels");
  EncodeError error;
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;
  const bool ok =
      write_jpeg(image.rgb.data(), image.width, image.height, quality, error, &buffer, &bytes);
  std::string out;
  if (ok) out.assign(reinterpret_cast<const char*>(buffer), bytes);
  std::free(buffer);
  if (!ok) return invalid(std::string("the picture cannot be written as JPEG: ") + error.message);
  return out;
}

}  // namespace valora::media
