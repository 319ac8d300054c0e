#include "server/page/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/files/file.h"
#include "base/json/json.h"

namespace valora::server {
namespace {

constexpr size_t kMostListBytes = size_t{1} << 20;
constexpr size_t kMostSamples = 256;
constexpr size_t kMostBytes = size_t{32} << 20;  // of all files together, which stay in memory

// Kinds that browsers show and the server decodes.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kSampleTypes = {
    {{".png", "image/png"},
     {".jpg", "image/jpeg"},
     {".jpeg", "image/jpeg"},
     {".webp", "image/webp"},
     {".gif", "image/gif"},
     {".mp4", "video/mp4"},
     {".webm", "video/webm"}}};

Result<std::string> sample_type(const std::filesystem::path& file) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::ranges::find(kSampleTypes, ending, [](const auto& t) { return t.first; });
  if (found == kSampleTypes.end())
    return invalid(fmt::format("{} is not a .png, .jpg, .jpeg, .webp, .gif, .mp4 or .webm file",
                               file.string()));
  return std::string(found->second);
}

// A text field; absent and null are the same, since a list may hold more than samples need.
Result<std::string> text_field(const Json& entry, const char* key, bool required) {
  const auto found = entry.find(key);
  if (found == entry.end() || found->is_null()) {
    if (required) return invalid(fmt::format("\"{}\" is missing", key));
    return std::string();
  }
  if (!found->is_string()) return invalid(fmt::format("\"{}\" must be a text", key));
  return found->get<std::string>();
}

class SampleReader {
 public:
  explicit SampleReader(const std::string& path)
      : folder_(std::filesystem::path(path).parent_path()) {}

  Status add(const Json& entry) {
    if (!entry.is_object()) return invalid("it must be an object with \"media\"");
    VALORA_TRY(media, text_field(entry, "media", true));
    Sample sample;
    VALORA_TRY(question, text_field(entry, "question", false));
    VALORA_TRY(task, text_field(entry, "task", false));
    sample.question = std::move(question);
    sample.model = std::move(task);
    const std::filesystem::path file = folder_ / media;
    sample.name = file.filename().string();
    VALORA_TRY(type, sample_type(file));
    sample.content_type = std::move(type);
    VALORA_TRY(bytes, bytes_of(file));
    sample.bytes = std::move(bytes);
    const bool known = std::ranges::any_of(out_, [&](const Sample& other) {
      return std::tie(other.bytes, other.model, other.question) ==
             std::tie(sample.bytes, sample.model, sample.question);
    });
    if (known) return {};
    if (out_.size() == kMostSamples)
      return invalid(fmt::format("a list has at most {} samples", kMostSamples));
    out_.push_back(std::move(sample));
    return {};
  }
  std::vector<Sample> take() { return std::move(out_); }

 private:
  // Several samples may be about one file, which is then in memory once.
  Result<std::shared_ptr<const std::string>> bytes_of(const std::filesystem::path& file) {
    auto& kept = files_[file.lexically_normal().string()];
    if (kept) return kept;
    VALORA_TRY(text, read_file(file.string(), kMostBytes));
    bytes_ += text.size();
    if (bytes_ > kMostBytes)
      return invalid(fmt::format("the files have more than {} MiB together", kMostBytes >> 20));
    kept = std::make_shared<const std::string>(std::move(text));
    return kept;
  }

  std::filesystem::path folder_;
  std::vector<Sample> out_;
  std::map<std::string, std::shared_ptr<const std::string>> files_;
  size_t bytes_ = 0;
};

}  // namespace

Result<std::vector<Sample>> read_samples(const std::string& path) {
  VALORA_TRY(text, read_file(path, kMostListBytes));
  VALORA_TRY(list, parse_json(text, path));
  if (!list.is_array()) return invalid(path + ": a list of samples is expected");
  SampleReader reader(path);
  for (size_t at = 0; at < list.size(); ++at) {
    const Status added = reader.add(list[at]);
    if (!added.ok())
      return invalid(fmt::format("{}: entry {}: {}", path, at + 1, added.error().message));
  }
  return reader.take();
}

}  // namespace valora::server
