#include "media/image/decoders.h"

#include <algorithm>

#include "base/text/strings.h"

namespace valora::media {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view bytes;
  const char* name;
  size_t at = 0;
};

constexpr Signature kSignatures[] = {
    {"\xff\x0a"sv, "JPEG XL"},
    {"\x00\x00\x00\x0cJXL "sv, "JPEG XL"},
    {"\x00\x00\x00\x0cjP  "sv, "JPEG 2000"},
    {"\xff\x4f\xff\x51"sv, "JPEG 2000"},
    {"\xff\xd8\xff\xf7"sv, "JPEG-LS"},
    {"II\xbc\x01"sv, "JPEG XR"},
    {"8BPS"sv, "a Photoshop file (PSD)"},
    {"%PDF"sv, "a PDF document"},
    {"%!PS"sv, "PostScript"},
    {"\xc5\xd0\xd3\xc6"sv, "PostScript"},
    {"\x00\x00\x01\x00"sv, "an icon (ICO)"},
    {"\x00\x00\x02\x00"sv, "a cursor (CUR)"},
    {"icns"sv, "an icon (ICNS)"},
    {"v/1\x01"sv, "OpenEXR"},
    {"#?RADIANCE"sv, "Radiance HDR"},
    {"DDS "sv, "DDS"},
    {"qoif"sv, "QOI"},
    {"gimp xcf"sv, "a GIMP file (XCF)"},
    {"BPG\xfb"sv, "BPG"},
    {"FLIF"sv, "FLIF"},
    {"\xd7\xcd\xc6\x9a"sv, "a Windows metafile (WMF)"},
    {" EMF"sv, "a Windows metafile (EMF)", 40},
    {"SIMPLE  ="sv, "FITS"},
    {"DICM"sv, "DICOM", 128},
    {"FUJIFILMCCD-RAW"sv, "the raw data of a camera"},
    {"\x1a\x45\xdf\xa3"sv, "a video (Matroska or WebM)"},
    {"OggS"sv, "a video or sound (Ogg)"},
    {"FLV\x01"sv, "a video (FLV)"},
    {"AVI "sv, "a video (AVI)", 8},
    {"WAVE"sv, "a sound (WAV)", 8},
    {"PK\x03\x04"sv, "a ZIP archive"},
    {"\x1f\x8b"sv, "a gzip archive"},
};

bool holds(std::string_view text, const Signature& signature) {
  return text.size() > signature.at && text.substr(signature.at).starts_with(signature.bytes);
}

// Markup may begin with white space, a byte order mark, comments or a declaration.
std::string markup_name(std::string_view text) {
  const std::string head = lower_case(text.substr(0, 1024));
  const size_t first = head.find_first_not_of("\xef\xbb\xbf \t\r\n");
  if (first == head.npos || head[first] != '<') return {};
  if (head.find("<svg") != head.npos) return "SVG";
  if (head.find("<html") != head.npos || head.find("<!doctype html") != head.npos)
    return "an HTML page";
  return head.find("<?xml") != head.npos ? "XML" : "";
}

std::string netpbm_name(std::string_view text) {
  const bool known = text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7' &&
                     (text[2] == '\n' || text[2] == ' ' || text[2] == '\r' || text[2] == '\t');
  return known ? "Netpbm (PBM, PGM, PPM)" : "";
}

std::string brand_name(const std::vector<std::string_view>& brands) {
  if (brands.empty()) return {};
  if (brands[0] == "crx ") return "the raw data of a camera";
  return brands[0] == "qt  " ? "a video (QuickTime)" : "a video (MP4)";
}

}  // namespace

std::vector<std::string_view> file_brands(ByteSpan bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  constexpr size_t kMajor = 8, kCompatible = 16, kBrand = 4;
  if (text.size() < kCompatible || text.substr(4, kBrand) != "ftyp") return {};
  const size_t length =
      size_t(bytes[0]) << 24 | size_t(bytes[1]) << 16 | size_t(bytes[2]) << 8 | bytes[3];
  std::vector<std::string_view> brands = {text.substr(kMajor, kBrand)};
  constexpr size_t kMostBrands = 64;
  for (size_t at = kCompatible;
       at + kBrand <= std::min(length, text.size()) && brands.size() < kMostBrands; at += kBrand)
    brands.push_back(text.substr(at, kBrand));
  return brands;
}

std::string other_format(ByteSpan bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Signature& signature : kSignatures)
    if (holds(text, signature)) return signature.name;
  for (const std::string& name :
       {brand_name(file_brands(bytes)), netpbm_name(text), markup_name(text)})
    if (!name.empty()) return name;
  return {};
}

}  // namespace valora::media
