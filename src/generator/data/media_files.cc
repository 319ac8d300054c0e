#include "generator/data/media_files.h"

#include <algorithm>
#include <filesystem>

#include "base/files/file.h"
#include "base/text/strings.h"

namespace valora::generator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPictures[] = {".jpg",  ".jpeg", ".png", ".webp", ".gif", ".heic",
                                          ".heif", ".avif", ".bmp", ".tif",  ".tiff"};
constexpr std::string_view kVideos[] = {".mp4", ".mkv", ".webm", ".avi", ".mov"};

}  // namespace

Result<std::string> find_medium(const std::string& root, const std::string& path) {
  if (path.empty() || path.find('\0') != path.npos)
    return invalid("a media path is empty or contains a zero byte");
  std::error_code fault;
  const std::string whole = fs::absolute(fs::path(root) / path, fault).lexically_normal().string();
  if (fault || !fs::is_regular_file(whole, fault))
    return invalid("there is no file " + shortened(whole, 1000));
  return whole;
}

std::string media_root_of(const DataSource& source) {
  return source.media_root.empty() ? fs::path(source.path).parent_path().string()
                                   : source.media_root;
}

bool is_medium(std::string_view path, Medium::Kind kind) {
  const std::string extension = lower_case(fs::path(path).extension().string());
  const std::span<const std::string_view> known =
      kind == Medium::Kind::kVideo ? std::span<const std::string_view>(kVideos) : kPictures;
  return std::find(known.begin(), known.end(), extension) != known.end();
}

std::string_view extensions_of(Medium::Kind kind) {
  return kind == Medium::Kind::kVideo
             ? "a video (.mp4, .mkv, .webm, .avi, .mov)"
             : "a picture (.jpg, .jpeg, .png, .webp, .gif, .heic, .heif, .avif, .bmp, "
               ".tif, .tiff)";
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
  std::error_code fault;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, fault), end; !fault && it != end; it.increment(fault)) {
    std::string name = it->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (fault) return invalid(folder + " cannot be read: " + fault.message(), folder);
  std::sort(names.begin(), names.end());
  return names;
}

Result<media::ImageSize> picture_size(const std::string& path) {
  VALORA_TRY(file, MappedFile::open(path));
  auto size = media::image_size(file->bytes(), media::Limits{});
  if (!size.ok()) return Error{size.error().code, path + ": " + size.error().message, path};
  return size;
}

}  // namespace valora::generator
