// Decodes the first picture of a TIFF through libtiff, strip by strip or tile by tile.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include <tiffio.h>

#include "media/image/decoders.h"
#include "media/image/tiff_layout.h"

namespace valora::media {
namespace {

constexpr char kTiff[] = "TIFF image";
// Beyond the largest strip or tile: tables of strips, palettes, libtiff's own buffers.
constexpr int64_t kOwnMemory = int64_t{64} << 20;

struct TiffSource {
  ByteSpan bytes;
  uint64_t at = 0;
  char message[200] = "";  // of the first error
};

tmsize_t read_tiff(thandle_t handle, void* out, tmsize_t count) {
  auto& source = *static_cast<TiffSource*>(handle);
  const uint64_t left = source.bytes.size() - std::min<uint64_t>(source.at, source.bytes.size());
  const auto taken = static_cast<size_t>(std::min<uint64_t>(left, static_cast<uint64_t>(count)));
  if (taken > 0) std::memcpy(out, source.bytes.data() + source.at, taken);
  source.at += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t write_tiff(thandle_t, void*, tmsize_t) { return -1; }

toff_t seek_tiff(thandle_t handle, toff_t offset, int whence) {
  auto& source = *static_cast<TiffSource*>(handle);
  const uint64_t base = whence == SEEK_SET   ? 0
                        : whence == SEEK_CUR ? source.at
                                             : source.bytes.size();
  return source.at = base + offset;
}

int close_tiff(thandle_t) { return 0; }

toff_t tiff_length(thandle_t handle) { return static_cast<TiffSource*>(handle)->bytes.size(); }

int keep_error(TIFF*, void* opaque, const char*, const char* format, va_list values) {
  auto& source = *static_cast<TiffSource*>(opaque);
  if (source.message[0] == '\0')
    std::vsnprintf(source.message, sizeof source.message, format, values);
  return 1;
}

int ignore_tiff_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

using TiffFile = std::unique_ptr<TIFF, decltype(&TIFFClose)>;

TiffFile open_tiff(TiffSource& source, const Limits& limits) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(
      TIFFOpenOptionsAlloc(), TIFFOpenOptionsFree);
  // A pixel has up to six samples of two bytes.
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), limits.max_pixels * 12 + kOwnMemory);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), ignore_tiff_warning, nullptr);
  // "m": not mapped.
  return TiffFile(TIFFClientOpenExt("image", "rm", &source, read_tiff, write_tiff, seek_tiff,
                                    close_tiff, tiff_length, nullptr, nullptr, options.get()),
                  TIFFClose);
}

Error tiff_error(const TiffSource& source) {
  return broken_image(kTiff, source.message[0] ? source.message : "the file is corrupt");
}

template <typename T>
T tag(TIFF* tiff, uint32_t name, T fallback) {
  T value = fallback;
  return TIFFGetFieldDefaulted(tiff, name, &value) ? value : fallback;
}

Result<StoredSize> read_size(TIFF* tiff, const TiffSource& source, const Limits& limits) {
  if (!tiff) return tiff_error(source);
  const auto width = tag<uint32_t>(tiff, TIFFTAG_IMAGEWIDTH, 0),
             height = tag<uint32_t>(tiff, TIFFTAG_IMAGELENGTH, 0);
  if (width > INT32_MAX || height > INT32_MAX) return broken_image(kTiff, "its size is invalid");
  VALORA_CHECK(check_size(kTiff, width, height, limits));
  return StoredSize{width, height, tag<uint16_t>(tiff, TIFFTAG_ORIENTATION, 1)};
}

Status check_compression(TIFF* tiff) {
  switch (const auto scheme = tag<uint16_t>(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE)) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_PACKBITS:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_LZMA:
    case COMPRESSION_ZSTD:
    case COMPRESSION_WEBP: return {};
    case COMPRESSION_OJPEG: return broken_image(kTiff, "JPEG of TIFF 6.0 is not supported");
    default:
      return broken_image(kTiff, "its compression " + std::to_string(scheme) + " is not supported");
  }
}

TiffTags tags_of(TIFF* tiff, bool planar) {
  TiffTags tags;
  tags.photometric = tag<uint16_t>(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISWHITE);
  tags.bits = tag<uint16_t>(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  tags.samples = tag<uint16_t>(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  tags.sample_format = tag<uint16_t>(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  uint16_t extra = 0;
  const uint16_t* meanings = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra, &meanings) && meanings)
    tags.extra.assign(meanings, meanings + extra);
  // Planes without a meaning are not read.
  const bool unspecified = std::all_of(tags.extra.begin(), tags.extra.end(),
                                       [](uint16_t meaning) { return meaning == 0; });
  if (planar && unspecified) {
    tags.samples -= static_cast<int>(tags.extra.size());
    tags.extra.clear();
  }
  uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
  if (tags.photometric == PHOTOMETRIC_PALETTE && tags.bits <= 8 &&
      TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
    tags.colour_map = {red, green, blue};
  return tags;
}

// The rectangles in which the file stores its pixels: strips, or tiles, which may reach beyond the
// picture.
struct TiffBlocks {
  bool tiled = false;
  int64_t width = 0, height = 0;  // of a block
  int64_t across = 0, down = 0;
};

// Refuses files whose strips or tiles share their bytes, which would be read again for each.
Status check_overlap(TIFF* tiff, size_t file_bytes) {
  const uint32_t count = TIFFIsTiled(tiff) ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    total += std::min<uint64_t>(TIFFGetStrileByteCount(tiff, i), file_bytes);
    if (total > 2 * uint64_t{file_bytes})
      return broken_image(kTiff, "its strips or tiles overlap in the file");
  }
  return {};
}

Result<TiffBlocks> blocks_of(TIFF* tiff, const StoredSize& size, const Limits& limits) {
  TiffBlocks blocks;
  blocks.tiled = TIFFIsTiled(tiff) != 0;
  const auto rows = tag<uint32_t>(tiff, TIFFTAG_ROWSPERSTRIP, UINT32_MAX);
  blocks.width = blocks.tiled ? int64_t{tag<uint32_t>(tiff, TIFFTAG_TILEWIDTH, 0)} : size.width;
  blocks.height = blocks.tiled ? int64_t{tag<uint32_t>(tiff, TIFFTAG_TILELENGTH, 0)}
                               : std::min<int64_t>(rows, size.height);
  if (blocks.width <= 0 || blocks.height <= 0 || blocks.width > INT32_MAX ||
      blocks.height > INT32_MAX)
    return broken_image(kTiff, "the size of its strips or tiles is invalid");
  VALORA_CHECK(check_size("TIFF image's tile", blocks.width, blocks.height, limits));
  blocks.across = (size.width + blocks.width - 1) / blocks.width;
  blocks.down = (size.height + blocks.height - 1) / blocks.height;
  return blocks;
}

class TiffReader {
 public:
  TiffReader(TIFF* tiff, const TiffBlocks& blocks, Image& image)
      : tiff_(tiff), blocks_(blocks), image_(image) {}

  // Through a layout. planes: samples are stored apart.
  bool read(const TiffLayout& layout, bool planes) {
    const bool apart = planes && layout.samples() > 1;
    const size_t bits = size_t(layout.sample_bits()), bytes = (bits + 7) / 8;
    const auto samples = static_cast<size_t>(layout.samples()), width = size_t(blocks_.width);
    if (row_bytes() * 8 < width * bits * (apart ? 1 : samples) || (apart && bits % 8 != 0))
      return false;
    const size_t row = apart ? width * samples * bytes : row_bytes();
    std::vector<uint8_t> block(row * size_t(blocks_.height)), plane;
    if (apart) plane.resize(row_bytes() * size_t(blocks_.height));
    return each_block([&](int64_t column, int64_t line, int64_t within, int64_t height) {
      if (!apart && !read_block(column, line, 0, height, block)) return false;
      for (size_t s = 0; apart && s < samples; ++s) {
        if (!read_block(column, line, s, height, plane)) return false;
        for (size_t i = 0; i < size_t(height) * width; ++i)
          std::memcpy(&block[(i * samples + s) * bytes], &plane[i * bytes], bytes);
      }
      for (int64_t y = 0; y < height; ++y)
        layout.unpack(&block[size_t(y) * row], within, pixel(column, line + y));
      return true;
    });
  }

  // YCbCr that is not JPEG, through libtiff's own conversion.
  bool read_rgba() {
    TIFFSetField(tiff_, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    std::vector<uint32_t> raster(size_t(blocks_.width) * size_t(blocks_.height));
    return each_block([&](int64_t column, int64_t line, int64_t width, int64_t height) {
      const auto x = static_cast<uint32_t>(column), y = static_cast<uint32_t>(line);
      if (!(blocks_.tiled ? TIFFReadRGBATileExt(tiff_, x, y, raster.data(), 1)
                          : TIFFReadRGBAStripExt(tiff_, y, raster.data(), 1)))
        return false;
      // Rows are upside down: in a strip from its last one, in a tile from the tile's last.
      const int64_t last = (blocks_.tiled ? blocks_.height : height) - 1;
      for (int64_t i = 0; i < height; ++i) {
        const uint32_t* from = &raster[size_t(last - i) * size_t(blocks_.width)];
        uint8_t* rgb = pixel(column, line + i);
        for (int64_t k = 0; k < width; ++k, rgb += 3) {
          rgb[0] = static_cast<uint8_t>(TIFFGetR(from[k]));
          rgb[1] = static_cast<uint8_t>(TIFFGetG(from[k]));
          rgb[2] = static_cast<uint8_t>(TIFFGetB(from[k]));
        }
      }
      return true;
    });
  }

 private:
  // Calls read(column, line, width, height) for the part of each block within the picture.
  template <typename Read>
  bool each_block(const Read& read) const {
    for (int64_t y = 0; y < image_.height; y += blocks_.height)
      for (int64_t x = 0; x < image_.width; x += blocks_.width)
        if (!read(x, y, std::min<int64_t>(blocks_.width, image_.width - x),
                  std::min<int64_t>(blocks_.height, image_.height - y)))
          return false;
    return true;
  }

  size_t row_bytes() const {
    return static_cast<size_t>(blocks_.tiled ? TIFFTileRowSize64(tiff_)
                                             : TIFFScanlineSize64(tiff_));
  }

  bool read_block(int64_t column, int64_t line, size_t plane, int64_t height,
                  std::vector<uint8_t>& into) const {
    const auto x = static_cast<uint32_t>(column), y = static_cast<uint32_t>(line);
    const auto s = static_cast<uint16_t>(plane);
    if (blocks_.tiled) {
      const auto size = static_cast<tmsize_t>(into.size());
      return TIFFReadEncodedTile(tiff_, TIFFComputeTile(tiff_, x, y, 0, s), into.data(), size) ==
             size;
    }
    const auto size = static_cast<tmsize_t>(row_bytes() * size_t(height));
    return TIFFReadEncodedStrip(tiff_, TIFFComputeStrip(tiff_, y, s), into.data(), size) == size;
  }

  uint8_t* pixel(int64_t x, int64_t y) { return &image_.rgb[size_t(y * image_.width + x) * 3]; }

  TIFF* tiff_;
  const TiffBlocks& blocks_;
  Image& image_;
};

}  // namespace

bool is_tiff(ByteSpan bytes) {
  if (bytes.size() < 4) return false;
  const bool little = bytes[0] == 'I' && bytes[1] == 'I', big = bytes[0] == 'M' && bytes[1] == 'M';
  const int version = little ? bytes[2] | bytes[3] << 8 : bytes[2] << 8 | bytes[3];
  return (little || big) && (version == 42 || version == 43);
}

Result<StoredSize> tiff_size(ByteSpan bytes, const Limits& limits) {
  TiffSource source{bytes};
  const TiffFile tiff = open_tiff(source, limits);
  return read_size(tiff.get(), source, limits);
}

Result<StoredImage> decode_tiff(ByteSpan bytes, const Limits& limits) {
  TiffSource source{bytes};
  const TiffFile tiff = open_tiff(source, limits);
  VALORA_TRY(size, read_size(tiff.get(), source, limits));
  VALORA_CHECK(check_compression(tiff.get()));
  const bool planes =
      tag<uint16_t>(tiff.get(), TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
  TiffTags tags = tags_of(tiff.get(), planes);
  bool converted = false;  // by libtiff
  if (tags.photometric == PHOTOMETRIC_YCBCR && tags.samples == 3 && tags.bits == 8) {
    if (tag<uint16_t>(tiff.get(), TIFFTAG_COMPRESSION, 0) == COMPRESSION_JPEG && !planes) {
      TIFFSetField(tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
      tags.photometric = PHOTOMETRIC_RGB;
    } else {
      converted = true;
    }
  }
  VALORA_CHECK(check_overlap(tiff.get(), bytes.size()));
  VALORA_TRY(blocks, blocks_of(tiff.get(), size, limits));
  std::optional<TiffLayout> layout;
  if (!converted) {
    VALORA_TRY(known, TiffLayout::of(tags));
    layout = known;
  }
  StoredImage stored{blank_image(size.width, size.height), size.orientation};
  TiffReader reader(tiff.get(), blocks, stored.image);
  if (!(layout ? reader.read(*layout, planes) : reader.read_rgba())) return tiff_error(source);
  return stored;
}

}  // namespace valora::media
