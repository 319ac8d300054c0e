#include "generator/fusion/task_digest.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

#include "base/files/file.h"
#include "base/threads/worker_pool.h"
#include "generator/stopped.h"

namespace valora::generator {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

// Adds everything except the media.
void add_texts(DigestBuilder& builder, const Sample& sample) {
  builder.add(sample.question).add(sample.answer);
  for (const std::string& text : sample.references) builder.add(text);
  for (const std::string& text : sample.labels) builder.add(text);
  for (const LabelledBox& box : sample.boxes)
    builder.add(box.label).add(box.box.x0).add(box.box.y0).add(box.box.x1).add(box.box.y1);
}

// Reads in pieces: a video may be larger than memory.
Result<Digest> digest_of_file(const std::string& path) {
  VALORA_TRY(file, InputFile::open(path));
  DigestBuilder builder;
  std::vector<char> piece(std::min(kPiece, file.size()));
  for (size_t begin = 0; begin < file.size(); begin += piece.size()) {
    VALORA_TRY(read, file.read(begin, piece));
    builder.add(std::string_view(piece.data(), read));
  }
  return builder.finish();
}

using Digests = std::map<std::string, std::optional<Result<Digest>>>;  // by path

Status read_all(Digests& digests, int threads, const std::function<void(int, int)>& progress,
                const std::stop_token& stop) {
  std::vector<Digests::value_type*> files;
  for (auto& file : digests) files.push_back(&file);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  int done = 0;
  {
    WorkerPool pool(std::max(1, threads));
    for (int t = 0; t < std::max(1, threads); ++t)
      pool.post([&] {
        for (size_t i; (i = next++) < files.size() && !stop.stop_requested();) {
          files[i]->second = digest_of_file(files[i]->first);
          const std::lock_guard lock(mutex);
          if (progress) progress(++done, static_cast<int>(files.size()));
        }
      });
  }
  if (stop.stop_requested()) return stopped();
  for (const auto& [path, digest] : digests)
    if (!digest->ok()) return digest->error();
  return {};
}

}  // namespace

void add_training(DigestBuilder& builder, std::span<const Sample> samples,
                  std::span<const Example> examples) {
  for (const Sample& sample : samples) add_texts(builder, sample);
  for (const Example& example : examples) {
    builder.add(std::span<const int32_t>(example.tokens));
    for (const Example::Visual& visual : example.visuals) builder.add(visual.digest);
  }
}

Status add_validation(DigestBuilder& builder, std::span<const Sample> samples, int threads,
                      const std::function<void(int, int)>& progress, const std::stop_token& stop) {
  Digests digests;
  for (const Sample& sample : samples)
    for (const Medium& medium : sample.media)
      for (const std::string& file : medium.files) digests[file];
  VALORA_CHECK(read_all(digests, threads, progress, stop));
  for (const Sample& sample : samples) {
    add_texts(builder, sample);
    for (const Medium& medium : sample.media)
      for (const std::string& file : medium.files) builder.add(**digests.at(file));
  }
  return {};
}

}  // namespace valora::generator
