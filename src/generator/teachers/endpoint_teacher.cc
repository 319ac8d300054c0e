// A teacher behind an OpenAI-compatible endpoint.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/files/file.h"
#include "base/text/base64.h"
#include "generator/evaluator.h"
#include "generator/stopped.h"
#include "generator/teachers/chat_endpoint.h"
#include "generator/teachers/lesson.h"
#include "media/image/image.h"

namespace valora::generator {
namespace {

constexpr const char* kKeyVariable = "VALORA_TEACHER_API_KEY";

// Remote endpoints cannot read local files, so media are sent as data: URLs.
Result<std::string> data_url(const Medium& medium) {
  const media::Limits limits;
  const bool video = medium.kind == Medium::Kind::kVideo;
  if (medium.files.size() != 1) {
    VALORA_TRY(prompt, prompt_of(Sample{.media = {medium}}));
    return std::get<MediaRef>(std::get<ChatPrompt>(prompt).messages.front().parts.front()).url;
  }
  VALORA_TRY(bytes,
             read_file(medium.files.front(), video ? limits.max_video_bytes : limits.max_bytes));
  const std::span as_bytes(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return std::string("data:") + (video ? "video/mp4" : media::image_type(as_bytes)) + ";base64," +
         encode_base64(bytes);
}

Result<Json> body_of(const Task& task, const Question& question) {
  Json content = Json::array();
  for (const Medium& medium : question.input.media) {
    VALORA_TRY(url, data_url(medium));
    const char* type = medium.kind == Medium::Kind::kVideo ? "video_url" : "image_url";
    content.push_back({{"type", type}, {type, {{"url", std::move(url)}}}});
  }
  content.push_back({{"type", "text"}, {"text", question.text}});
  return Json{{"model", task.teacher->model},
              {"messages", {{{"role", "user"}, {"content", std::move(content)}}}},
              {"temperature", 0},
              {"max_tokens", task.max_answer_tokens},
              {"logprobs", true}};
}

EndpointOptions endpoint_of(const Task& task, const TeacherOptions& options) {
  const char* key = std::getenv(kKeyVariable);
  return {task.teacher->url, key ? key : "", options.timeout_seconds, options.retries,
          options.retry_seconds};
}

// Asks the questions of one teacher on several threads.
class Questioning {
 public:
  Questioning(const Task& task, std::span<const Question> questions, const TeacherOptions& options)
      : task_(task),
        questions_(questions),
        endpoint_(endpoint_of(task, options)),
        lessons_(questions.size()) {}

  Result<std::vector<Lesson>> run(const TeacherOptions& options) {
    std::vector<std::jthread> threads;
    const size_t count =
        std::min(questions_.size(), static_cast<size_t>(std::max(1, options.concurrency)));
    for (size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    {
      const std::stop_callback on_stop(options.stop, [this] { fail(stopped()); });
      wait_and_tell(options.progress);
    }
    threads.clear();
    if (failure_) return *failure_;
    return std::move(lessons_);
  }

 private:
  // The first failure ends all questions.
  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(error);
    stop_.request_stop();
    changed_.notify_all();
  }

  Result<Lesson> ask(const Question& question) const {
    VALORA_TRY(body, body_of(task_, question));
    VALORA_TRY(reply, ask_chat(endpoint_, body, stop_.get_token()));
    Lesson lesson = read_lesson(task_, question, reply.text);
    lesson.confidence = confidence_of(reply.logprobs);
    return lesson;
  }

  void work() {
    for (size_t i; (i = next_++) < questions_.size() && !stop_.stop_requested();) {
      auto lesson = ask(questions_[i]);
      if (!lesson.ok())
        fail({lesson.error().code, questions_[i].input.origin + ": " + lesson.error().message, {}});
      const std::lock_guard lock(mutex_);
      if (lesson.ok()) lessons_[i] = std::move(lesson).value();
      ++done_;
      changed_.notify_all();
    }
  }

  // Returns when all questions are answered or one has failed.
  void wait_and_tell(const std::function<void(int, int)>& progress) {
    std::unique_lock lock(mutex_);
    for (size_t told = 0; told < questions_.size() && !failure_;) {
      changed_.wait(lock, [&] { return failure_ || done_ != told; });
      told = done_;
      lock.unlock();
      if (progress) progress(static_cast<int>(told), static_cast<int>(questions_.size()));
      lock.lock();
    }
  }

  const Task& task_;
  const std::span<const Question> questions_;
  const EndpointOptions endpoint_;
  std::stop_source stop_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lesson> lessons_;
  std::optional<Error> failure_;
  size_t done_ = 0;
};

}  // namespace

Result<std::vector<Lesson>> ask_endpoint(const Task& task, std::span<const Question> questions,
                                         const TeacherOptions& options) {
  return Questioning(task, questions, options).run(options);
}

}  // namespace valora::generator
