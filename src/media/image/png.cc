#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "media/image/decoders.h"
#include "media/image/orientation.h"

namespace valora::media {
namespace {

struct PngSource {
  ByteSpan rest;
  char message[128] = "";
};

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* source = static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source->rest.size()) png_error(png, "the file is truncated");
  std::memcpy(out, source->rest.data(), count);
  source->rest = source->rest.subspan(count);
}

[[noreturn]] void fail(png_structp png, png_const_charp message) {
  auto* source = static_cast<PngSource*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof source->message, "%s", message);
  png_longjmp(png, 1);
}

void ignore_warning(png_structp, png_const_charp) {}

// The layout of libpng's rows; follows PIL's modes.
enum class Layout {
  kGrey,    // 1 byte: grey, including grey whose alpha was stripped
  kGrey16,  // 2 bytes: PIL keeps 16-bit grey and clips it to 255
  kIndex,   // 1 byte: palette index
  kRgb,     // 3 bytes; the high byte of 16-bit samples
};

size_t bytes_per_pixel(Layout layout) {
  return layout == Layout::kRgb ? 3 : layout == Layout::kGrey16 ? 2 : 1;
}

// libpng reports errors by longjmp, which runs no destructors, so methods that call setjmp have
// only trivial locals.
class PngReader {
 public:
  explicit PngReader(ByteSpan bytes) : source_{bytes} {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, fail, ignore_warning);
    if (png_) info_ = png_create_info_struct(png_);
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  bool read_header() {
    if (!png_ || !info_) return false;
    if (setjmp(png_jmpbuf(png_))) return false;
    png_set_read_fn(png_, &source_, read_bytes);
    // Ancillary chunks are neither kept nor inflated, so that a profile or text cannot be a
    // decompression bomb.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    return true;
  }

  bool read_pixels(uint8_t** rows) {
    if (setjmp(png_jmpbuf(png_))) return false;
    const Layout rows_layout = layout();
    if (rows_layout == Layout::kGrey) png_set_expand_gray_1_2_4_to_8(png_);
    if (rows_layout == Layout::kIndex) png_set_packing(png_);
    if (rows_layout != Layout::kGrey16) png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != size_t(width()) * bytes_per_pixel(rows_layout))
      png_error(png_, "unexpected row size");
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  Layout layout() const {
    switch (png_get_color_type(png_, info_)) {
      case PNG_COLOR_TYPE_PALETTE: return Layout::kIndex;
      case PNG_COLOR_TYPE_GRAY:
        return png_get_bit_depth(png_, info_) == 16 ? Layout::kGrey16 : Layout::kGrey;
      case PNG_COLOR_TYPE_GRAY_ALPHA: return Layout::kGrey;
      default: return Layout::kRgb;
    }
  }
  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }
  std::span<const png_color> palette() const {
    png_colorp colours = nullptr;
    int count = 0;
    png_get_PLTE(png_, info_, &colours, &count);
    return {colours, static_cast<size_t>(count)};
  }
  const char* message() const { return source_.message; }

 private:
  PngSource source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

void expand(const std::vector<uint8_t>& stored, Layout layout, std::span<const png_color> palette,
            Image& image) {
  uint8_t* out = image.rgb.data();
  const size_t pixels = image.rgb.size() / 3;
  for (size_t i = 0; i < pixels; ++i, out += 3) {
    if (layout == Layout::kIndex) {
      const size_t index = stored[i];
      const png_color colour = index < palette.size() ? palette[index] : png_color{0, 0, 0};
      out[0] = colour.red, out[1] = colour.green, out[2] = colour.blue;
    } else {
      const bool clipped = layout == Layout::kGrey16 && stored[2 * i] != 0;
      out[0] = out[1] = out[2] = clipped                     ? 255
                                 : layout == Layout::kGrey16 ? stored[2 * i + 1]
                                                             : stored[i];
    }
  }
}

// Reads the orientation from the chunks itself, because libpng skips them.
int png_orientation(ByteSpan bytes) {
  using namespace std::string_view_literals;
  ByteSpan exif;
  std::string_view xmp;
  size_t at = 8;
  while (bytes.size() - at >= 12) {
    const size_t length =
        size_t(bytes[at]) << 24 | bytes[at + 1] << 16 | bytes[at + 2] << 8 | bytes[at + 3];
    if (length > bytes.size() - at - 12) break;
    const std::string_view type(reinterpret_cast<const char*>(&bytes[at + 4]), 4);
    const std::string_view data(reinterpret_cast<const char*>(&bytes[at + 8]), length);
    if (type == "eXIf") exif = bytes.subspan(at + 8, length);
    // The keyword, then zero bytes: compression flag and method (uncompressed).
    if (type == "iTXt" && data.starts_with("XML:com.adobe.xmp\0\0\0"sv)) xmp = data;
    at += 12 + length;
  }
  return orientation_of(exif, xmp);
}

Result<StoredSize> read_size(PngReader& reader, ByteSpan bytes, const Limits& limits) {
  if (!reader.read_header()) return broken_image("PNG image", reader.message());
  VALORA_CHECK(check_size("PNG image", reader.width(), reader.height(), limits));
  return StoredSize{reader.width(), reader.height(), png_orientation(bytes)};
}

}  // namespace

Result<StoredSize> png_size(ByteSpan bytes, const Limits& limits) {
  PngReader reader(bytes);
  return read_size(reader, bytes, limits);
}

Result<StoredImage> decode_png(ByteSpan bytes, const Limits& limits) {
  PngReader reader(bytes);
  VALORA_TRY(size, read_size(reader, bytes, limits));
  StoredImage stored{blank_image(size.width, size.height), size.orientation};
  Image& image = stored.image;
  const Layout layout = reader.layout();
  const size_t row_bytes = size_t(image.width) * bytes_per_pixel(layout);
  std::vector<uint8_t> narrow(layout == Layout::kRgb ? 0 : row_bytes * image.height);
  uint8_t* const pixels = layout == Layout::kRgb ? image.rgb.data() : narrow.data();
  std::vector<uint8_t*> rows(image.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = pixels + y * row_bytes;

  if (!reader.read_pixels(rows.data())) return broken_image("PNG image", reader.message());
  if (layout != Layout::kRgb) expand(narrow, layout, reader.palette(), image);
  return stored;
}

}  // namespace valora::media
