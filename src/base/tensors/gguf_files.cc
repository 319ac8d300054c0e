#include "base/tensors/gguf_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/files/file.h"
#include "base/text/strings.h"

namespace valora {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGgufEnd = ".gguf";
constexpr size_t kPartDigits = 5;

std::optional<int64_t> part_digits(std::string_view text) {
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return {};
    value = value * 10 + (c - '0');
  }
  return value;
}

std::vector<std::string> gguf_files_in(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == kGgufEnd) files.push_back(entry.path().string());
  std::ranges::sort(files);
  return files;
}

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

// Lower is better. F32 holds the values of the other two exactly; F16 has more digits than BF16.
size_t rank_of_mmproj(const std::string& path) {
  constexpr std::array<std::string_view, 3> kTypes = {"f32", "f16", "bf16"};
  const std::string name = lower_case(name_of(path));
  for (size_t i = 0; i < kTypes.size(); ++i) {
    const size_t at = name.rfind(kTypes[i]);
    if (at != name.npos && (at == 0 || !std::isalnum(static_cast<unsigned char>(name[at - 1]))))
      return i;
  }
  return kTypes.size();
}

}  // namespace

std::string GgufPartName::path(int64_t other) const {
  return fmt::format("{}-{:05}-of-{:05}{}", stem, other, count, kGgufEnd);
}

std::optional<GgufPartName> gguf_part_name(const std::string& path) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + kPartDigits + kOf.size() + kPartDigits + kGgufEnd.size();
  if (path.size() <= kTail || !path.ends_with(kGgufEnd)) return {};
  const size_t at = path.size() - kTail;
  const std::string_view tail = std::string_view(path).substr(at);
  if (tail[0] != '-' || tail.substr(1 + kPartDigits, kOf.size()) != kOf) return {};
  const auto number = part_digits(tail.substr(1, kPartDigits));
  const auto count = part_digits(tail.substr(1 + kPartDigits + kOf.size(), kPartDigits));
  if (!number || !count || *number < 1 || *number > *count) return {};
  return GgufPartName{path.substr(0, at), *number, *count};
}

bool is_mmproj_name(std::string_view name) {
  return lower_case(name).find("mmproj") != std::string::npos;
}

std::optional<std::string> find_gguf(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) {
    const auto file = InputFile::open(path);
    std::string begin(4, '\0');
    const auto size = file.ok() ? file->read(0, begin) : Result<size_t>(size_t{0});
    const bool is_gguf = size.ok() && *size == begin.size() && begin == "GGUF";
    return is_gguf || path.ends_with(kGgufEnd) ? std::optional(path) : std::nullopt;
  }
  if (!fs::is_directory(path, error)) return std::nullopt;
  for (const char* name : {"/config.json", "/adapter_config.json", "/tokenizer.json"})
    if (file_exists(path + name)) return std::nullopt;
  std::optional<std::string> found;
  for (const std::string& file : gguf_files_in(path)) {
    if (!is_gguf_model_name(file)) continue;
    if (found) return std::nullopt;
    found = file;
  }
  return found;
}

MmprojChoice choose_mmproj(const std::vector<std::string>& files) {
  MmprojChoice best;
  size_t rank = 0;
  for (const std::string& file : files) {
    if (!is_mmproj_name(name_of(file))) continue;
    const size_t own = rank_of_mmproj(file);
    if (best.file.empty() || own < rank) {
      best = {file, false};
      rank = own;
    } else if (own == rank) {
      best.several = true;
    }
  }
  return best;
}

bool is_gguf_model_name(const std::string& path) {
  const auto part = gguf_part_name(path);
  return path.ends_with(kGgufEnd) && !is_mmproj_name(name_of(path)) && !(part && part->number > 1);
}

Result<std::string> find_mmproj(const std::string& model_file, const std::string& given) {
  if (given == "none") return std::string();
  if (!given.empty()) {
    if (file_exists(given)) return given;
    return not_found("--mmproj " + given + " does not exist", given);
  }
  const std::string folder = fs::path(model_file).parent_path().string();
  std::vector<std::string> others = gguf_files_in(folder.empty() ? "." : folder);
  std::erase_if(others,
                [&](const std::string& file) { return name_of(file) == name_of(model_file); });
  const MmprojChoice best = choose_mmproj(others);
  if (!best.several) return best.file;
  return unprocessable(
      fmt::format("{} is next to several files that may be its vision part, such as "
                  "{}: name one with --mmproj FILE, or leave it out with --mmproj "
                  "none",
                  model_file, name_of(best.file)),
      model_file);
}

}  // namespace valora
