#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>  // after jpeglib.h, whose configuration decides which codes it defines

#include "media/image/decoders.h"
#include "media/image/orientation.h"

namespace valora::media {
namespace {

// Real progressive files have about ten scans. In a hostile file, each tiny scan costs a pass over
// all pixels.
constexpr int kMaxScans = 100;

struct ErrorState {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  info->err->format_message(info, state->message);
  std::longjmp(state->jump, 1);
}

// libjpeg only warns when it fills missing or broken data with grey; treat these warnings as
// errors.
void emit_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC: fail(info);
    default: return;
  }
}

void check_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* state = reinterpret_cast<ErrorState*>(info->err);
  std::snprintf(state->message, sizeof state->message, "more than %d scans", kMaxScans);
  std::longjmp(state->jump, 1);
}

// a * b / 255, rounded as in PIL.
int multiply_255(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

void grey_to_rgb(const uint8_t* in, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, rgb += 3) rgb[0] = rgb[1] = rgb[2] = in[x];
}

// PIL assumes Adobe's convention for all four-channel files: inks are stored inverted.
void inverted_cmyk_to_rgb(const uint8_t* in, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, in += 4)
    for (int c = 0; c < 3; ++c)
      *rgb++ = static_cast<uint8_t>(in[3] - multiply_255(255 - in[c], in[3]));
}

// libjpeg reports errors by longjmp, which runs no destructors, so methods that call setjmp have
// only trivial locals.
class JpegReader {
 public:
  JpegReader() {
    std::memset(&info_, 0, sizeof info_);
    info_.err = jpeg_std_error(&error_.manager);
    error_.manager.error_exit = fail;
    error_.manager.emit_message = emit_message;
    progress_.progress_monitor = check_scans;
  }
  ~JpegReader() { jpeg_destroy_decompress(&info_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool read_header(ByteSpan bytes) {
    if (setjmp(error_.jump)) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  // row: a scratch row of channels() * width bytes.
  bool read_pixels(uint8_t* row, uint8_t* rgb) {
    if (setjmp(error_.jump)) return false;
    info_.out_color_space = out_color_space();
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      uint8_t* out = rgb + size_t(info_.output_scanline) * info_.output_width * 3;
      JSAMPROW target = channels() == 3 ? out : row;
      jpeg_read_scanlines(&info_, &target, 1);
      if (channels() == 1) grey_to_rgb(row, static_cast<int>(info_.output_width), out);
      if (channels() == 4) inverted_cmyk_to_rgb(row, static_cast<int>(info_.output_width), out);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  int channels() const { return info_.num_components; }
  int64_t width() const { return info_.image_width; }
  int64_t height() const { return info_.image_height; }
  const char* message() const { return error_.message; }

  // The payloads of all APP1 markers that begin with `prefix`, joined as in PIL.
  std::string app1(std::string_view prefix) const {
    std::string joined;
    for (const jpeg_marker_struct* m = info_.marker_list; m; m = m->next) {
      const std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
      if (data.starts_with(prefix)) joined += data.substr(prefix.size());
    }
    return joined;
  }

 private:
  J_COLOR_SPACE out_color_space() const {
    return channels() == 1 ? JCS_GRAYSCALE : channels() == 3 ? JCS_RGB : JCS_CMYK;
  }

  jpeg_decompress_struct info_;
  ErrorState error_;
  jpeg_progress_mgr progress_{};
};

// Call before reading the pixels: libjpeg drops its markers once it has finished.
int stored_orientation(const JpegReader& reader) {
  using namespace std::string_view_literals;
  const std::string exif = reader.app1("Exif\0\0"sv);
  return orientation_of({reinterpret_cast<const uint8_t*>(exif.data()), exif.size()},
                        reader.app1("http://ns.adobe.com/xap/1.0/\0"sv));
}

Result<StoredSize> read_size(JpegReader& reader, ByteSpan bytes, const Limits& limits) {
  if (!reader.read_header(bytes)) return broken_image("JPEG image", reader.message());
  const int channels = reader.channels();
  if (channels != 1 && channels != 3 && channels != 4)
    return broken_image("JPEG image", "it has " + std::to_string(channels) + " colour channels");
  VALORA_CHECK(check_size("JPEG image", reader.width(), reader.height(), limits));
  return StoredSize{reader.width(), reader.height(), stored_orientation(reader)};
}

}  // namespace

Result<StoredSize> jpeg_size(ByteSpan bytes, const Limits& limits) {
  JpegReader reader;
  return read_size(reader, bytes, limits);
}

Result<StoredImage> decode_jpeg(ByteSpan bytes, const Limits& limits) {
  JpegReader reader;
  VALORA_TRY(size, read_size(reader, bytes, limits));
  StoredImage stored{blank_image(size.width, size.height), size.orientation};
  std::vector<uint8_t> row(reader.channels() == 3 ? 0 : size_t(size.width) * reader.channels());
  if (!reader.read_pixels(row.data(), stored.image.rgb.data()))
    return broken_image("JPEG image", reader.message());
  return stored;
}

}  // namespace valora::media
