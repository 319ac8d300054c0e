// Decodes the first frame of a GIF. libav's decoder would composite transparency, while PIL's
// convert("RGB") keeps the palette's colour of transparent pixels, so LZW is implemented here.
#include <algorithm>
#include <array>
#include <string_view>

#include "media/image/decoders.h"

namespace valora::media {
namespace {

// A forward reader. Past the end it returns zeros and records the overrun.
class Reader {
 public:
  explicit Reader(ByteSpan bytes) : bytes_(bytes) {}
  int byte() {
    if (at_ < bytes_.size()) return bytes_[at_++];
    ended_ = true;
    return 0;
  }
  int word() {
    const int low = byte();
    return low | byte() << 8;
  }
  ByteSpan take(size_t count) {
    if (count > bytes_.size() - at_) {
      ended_ = true;
      at_ = bytes_.size();
      return {};
    }
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  // One length-prefixed sub-block; empty at the end of the chain.
  ByteSpan sub_block() { return take(byte()); }
  bool ended() const { return ended_; }

 private:
  ByteSpan bytes_;
  size_t at_ = 0;
  bool ended_ = false;
};

struct Frame {
  int left = 0, top = 0, width = 0, height = 0;
  bool interlaced = false;
  int transparent = -1;  // palette index
  ByteSpan palette;      // RGB triples; empty: grey levels
};

// Reads codes of growing width from the chain of sub-blocks, lowest bits first.
class CodeReader {
 public:
  explicit CodeReader(Reader& reader) : reader_(reader) {}
  // -1 at the end of the chain.
  int next(int bits) {
    while (count_ < bits) {
      if (block_.empty()) block_ = reader_.sub_block();
      if (block_.empty()) return -1;
      buffer_ |= uint32_t(block_[0]) << count_;
      block_ = block_.subspan(1);
      count_ += 8;
    }
    const int code = static_cast<int>(buffer_ & ((1u << bits) - 1));
    buffer_ >>= bits;
    count_ -= bits;
    return code;
  }

 private:
  Reader& reader_;
  ByteSpan block_;
  uint32_t buffer_ = 0;
  int count_ = 0;
};

constexpr int kMaxCodes = 4096;

// Fills all of `out` with palette indices.
Status decode_lzw(Reader& reader, int min_bits, std::vector<uint8_t>& out) {
  if (min_bits < 1 || min_bits > 8) return broken_image("GIF image", "its code size is invalid");
  const int clear = 1 << min_bits, end = clear + 1;
  std::array<uint16_t, kMaxCodes> prefix;
  std::array<uint8_t, kMaxCodes> last;
  std::array<uint8_t, kMaxCodes> stack;
  for (int i = 0; i < clear; ++i) last[i] = static_cast<uint8_t>(i);

  CodeReader codes(reader);
  int bits = min_bits + 1, next = clear + 2, previous = -1;
  uint8_t first = 0;
  size_t written = 0;
  while (written < out.size()) {
    const int code = codes.next(bits);
    if (code < 0 || code == end) return broken_image("GIF image", "its pixel data is truncated");
    if (code == clear) {
      bits = min_bits + 1, next = clear + 2, previous = -1;
      continue;
    }
    // A code may name the entry that it is about to define, but none after it.
    if (code > next || (code == next && previous < 0))
      return broken_image("GIF image", "its pixel data is corrupt");
    int depth = 0;
    int walk = code;
    if (code == next) {
      stack[depth++] = first;
      walk = previous;
    }
    while (walk >= clear) {
      stack[depth++] = last[walk];
      walk = prefix[walk];
    }
    first = last[walk];
    stack[depth++] = first;
    while (depth > 0 && written < out.size()) out[written++] = stack[--depth];
    if (previous >= 0 && next < kMaxCodes) {
      prefix[next] = static_cast<uint16_t>(previous);
      last[next] = first;
      if (++next == 1 << bits && bits < 12) ++bits;
    }
    previous = code;
  }
  return {};
}

// The image rows in the order in which the file stores them.
std::vector<int> row_order(int height, bool interlaced) {
  std::vector<int> order;
  order.reserve(height);
  struct Pass {
    int first, step;
  };
  static constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  static constexpr Pass kPlain[] = {{0, 1}};
  for (const Pass pass :
       interlaced ? std::span<const Pass>(kInterlaced) : std::span<const Pass>(kPlain))
    for (int y = pass.first; y < height; y += pass.step) order.push_back(y);
  return order;
}

ByteSpan read_palette(Reader& reader, int flags) {
  return flags & 0x80 ? reader.take(size_t{3} << ((flags & 7) + 1)) : ByteSpan{};
}

// PIL opens a GIF whose palette is a plain grey ramp as a grey picture.
bool is_grey_ramp(ByteSpan palette) {
  for (size_t i = 0; i < palette.size(); ++i)
    if (palette[i] != i / 3) return false;
  return true;
}

// Skips to the first image descriptor, noting the transparent index on the way.
Result<Frame> read_frame_header(Reader& reader, ByteSpan global_palette) {
  Frame frame;
  for (int block = reader.byte(); block != ','; block = reader.byte()) {
    if (reader.ended() || block == ';') return broken_image("GIF image", "it has no frame");
    if (block != '!') continue;
    const int label = reader.byte();
    ByteSpan data = reader.sub_block();
    if (label == 0xF9 && data.size() >= 4 && data[0] & 1) frame.transparent = data[3];
    while (!data.empty()) data = reader.sub_block();
  }
  frame.left = reader.word(), frame.top = reader.word();
  frame.width = reader.word(), frame.height = reader.word();
  const int flags = reader.byte();
  frame.interlaced = flags & 0x40;
  frame.palette = flags & 0x80 ? read_palette(reader, flags) : global_palette;
  if (reader.ended()) return broken_image("GIF image", "the file is truncated");
  if (is_grey_ramp(frame.palette)) frame.palette = {};
  return frame;
}

std::array<uint8_t, 3> colour(const Frame& frame, uint8_t index) {
  if (frame.palette.empty()) return {index, index, index};
  if (size_t(index) * 3 + 3 > frame.palette.size()) return {0, 0, 0};
  return {frame.palette[index * 3], frame.palette[index * 3 + 1], frame.palette[index * 3 + 2]};
}

struct Header {
  int width = 0, height = 0;
  Frame frame;
};

// Reads everything before the frame's pixels. A frame larger than the screen enlarges it.
Result<Header> read_header(Reader& reader, const Limits& limits) {
  reader.take(6);  // the signature
  const int screen_width = reader.word(), screen_height = reader.word();
  const int flags = reader.byte();
  reader.take(2);  // background colour and aspect ratio, both unused
  VALORA_TRY(frame, read_frame_header(reader, read_palette(reader, flags)));
  const int width = std::max(screen_width, frame.left + frame.width);
  const int height = std::max(screen_height, frame.top + frame.height);
  VALORA_CHECK(check_size("GIF image", width, height, limits));
  VALORA_CHECK(check_size("GIF image", frame.width, frame.height, limits));
  return Header{width, height, frame};
}

}  // namespace

Result<StoredSize> gif_size(ByteSpan bytes, const Limits& limits) {
  Reader reader(bytes);
  VALORA_TRY(header, read_header(reader, limits));
  return StoredSize{header.width, header.height};
}

Result<StoredImage> decode_gif(ByteSpan bytes, const Limits& limits) {
  Reader reader(bytes);
  VALORA_TRY(header, read_header(reader, limits));
  const Frame& frame = header.frame;
  const int min_bits = reader.byte();
  std::vector<uint8_t> indices(size_t(frame.width) * frame.height);
  VALORA_CHECK(decode_lzw(reader, min_bits, indices));

  StoredImage stored;
  stored.image = blank_image(header.width, header.height);
  std::vector<uint8_t>& rgb = stored.image.rgb;
  const auto background = colour(frame, static_cast<uint8_t>(std::max(frame.transparent, 0)));
  for (size_t i = 0; i < rgb.size(); i += 3)
    std::copy(background.begin(), background.end(), &rgb[i]);
  const uint8_t* index = indices.data();
  for (const int y : row_order(frame.height, frame.interlaced)) {
    uint8_t* out = &rgb[(size_t(frame.top + y) * header.width + frame.left) * 3];
    for (int x = 0; x < frame.width; ++x, out += 3) {
      const auto pixel = colour(frame, *index++);
      std::copy(pixel.begin(), pixel.end(), out);
    }
  }
  return stored;
}

}  // namespace valora::media
