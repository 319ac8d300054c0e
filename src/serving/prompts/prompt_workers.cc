#include "serving/prompts/prompt_workers.h"

#include <algorithm>

#include "base/fault.h"
#include "base/machine/cores.h"
#include "serving/prompts/chat_media.h"

namespace valora::serving {
namespace {

// These threads only wait for other hosts. A client with slow hosts leaves most of them to others.
constexpr int kFetchers = 32;
constexpr int kFetchersPerClient = 8;

// A few milliseconds of rendering and tokenizing.
constexpr size_t kShortText = size_t{64} << 10;

constexpr size_t kEach = 64;  // a template's work per message or value, in bytes of text

size_t json_cost(const Json& json) {
  size_t cost = kEach;
  if (const auto* text = json.get_ptr<const std::string*>()) cost += text->size();
  if (json.is_structured())
    for (const Json& value : json) cost += json_cost(value);
  return cost;
}

size_t message_cost(const ChatMessage& message) {
  size_t cost = kEach + message.parts.size() * kEach;
  for (const ContentPart& part : message.parts)
    if (const auto* text = std::get_if<std::string>(&part)) cost += text->size();
  cost += message.thought.value_or("").size();
  for (const ToolCall& call : message.tool_calls) cost += kEach + call.arguments.size();
  return cost;
}

// Cost of rendering and tokenizing, in bytes of text. Media cost nothing here, however long their
// URLs.
size_t text_cost(const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return text->size();
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (!chat) return 0;
  size_t cost = chat->tools.size() + json_cost(chat->template_variables);
  for (const ChatMessage& message : chat->messages) cost += message_cost(message);
  return cost;
}

int long_text_threads() { return std::clamp(usable_cores() / 4, 1, 4); }

Error cancelled() { return {ErrorCode::kCancelled, "the request was cancelled", {}}; }

}  // namespace

struct PromptWorkers::Progress {
  PromptJob job;
  RenderedPrompt rendered;
  std::vector<std::string> paths;  // of the prompt's media
  size_t item = 0;                 // index into the rendered prompt's media
  media::FetchedMedia fetched;
};

PromptWorkers::PromptWorkers(const Frontend& frontend, int media_workers, bool fetches)
    : frontend_(frontend),
      texts_(1),
      long_texts_(long_text_threads()),
      local_(1),
      images_(media_workers),
      videos_(media_workers) {
  if (fetches) remote_ = std::make_unique<FairPool>(kFetchers, kFetchersPerClient);
}

void PromptWorkers::finish() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return jobs_ == 0; });
}

void PromptWorkers::prepare(PromptJob job) {
  {
    const std::lock_guard lock(mutex_);
    ++jobs_;
  }
  try {
    FairPool& pool = text_cost(job.prompt) <= kShortText ? texts_ : long_texts_;
    const auto progress = std::make_shared<Progress>();
    progress->job = std::move(job);
    post(pool, progress, &PromptWorkers::begin);
  } catch (...) {
    forget_job();
    throw;
  }
}

void PromptWorkers::stopped(const std::string& client, uint64_t id) {
  for (FairPool* pool : {remote_.get(), &images_, &videos_})
    if (pool)
      if (const FairPool::Job job = pool->withdraw(client, id))
        return end_on_worker(client, id, job);
}

void PromptWorkers::end_on_worker(const std::string& client, uint64_t id,
                                  const FairPool::Job& job) {
  try {
    local_.post(client, id, job);
  } catch (const std::bad_alloc&) {
    job();  // the job was stopped, so this takes no time
  }
}

void PromptWorkers::post(FairPool& pool, const Job& job, Step step) {
  pool.post(job->job.client, job->job.id, [this, job, step] { run(job, step); });
}

void PromptWorkers::run(const Job& job, Step step) {
  try {
    if (job->job.stop.stop_requested()) return end(job, cancelled());
    (this->*step)(job);
  } catch (const std::exception& e) {
    end(job, fault("the prompt could not be prepared", e));
  }
}

void PromptWorkers::begin(const Job& job) {
  job->paths = media_paths(job->job.prompt);
  auto rendered =
      frontend_.begin(std::exchange(job->job.prompt, {}), job->job.add_generation_prompt,
                      job->job.adapters, job->job.keep_tokens);
  if (!rendered.ok()) return end(job, rendered.error());
  job->rendered = std::move(rendered).value();
  next_item(job);
}

void PromptWorkers::next_item(const Job& job) {
  if (job->item == job->rendered.media.size())
    return end(job, frontend_.finish(std::move(job->rendered), job->job.adapters));
  const bool remote = remote_ && media::is_remote(job->rendered.media[job->item].ref.url);
  post(remote ? *remote_ : local_, job, &PromptWorkers::fetch);
}

void PromptWorkers::fetch(const Job& job) {
  RenderedPrompt::Item& item = job->rendered.media[job->item];
  MediaRef& ref = item.ref;
  const std::string url = std::exchange(ref.url, {});  // the fetched bytes replace it
  auto fetched =
      frontend_.loader()->fetch(url, media_kind(ref.kind), job->job.stop, item.processor);
  if (!fetched.ok()) return end(job, in_part(fetched.error(), job->paths[job->item]));
  if (auto input = frontend_.loader()->find(*fetched)) return loaded(job, std::move(input));
  job->fetched = std::move(fetched).value();
  post(ref.kind == MediaRef::Kind::kImage ? images_ : videos_, job, &PromptWorkers::load);
}

void PromptWorkers::load(const Job& job) {
  auto input = frontend_.loader()->prepare(job->fetched, job->job.stop);
  job->fetched = {};
  if (!input.ok()) return end(job, in_part(input.error(), job->paths[job->item]));
  loaded(job, std::move(input).value());
}

void PromptWorkers::loaded(const Job& job, std::shared_ptr<const media::VisualInput> input) {
  job->rendered.media[job->item++].input = std::move(input);
  const Status fits = frontend_.check_loaded(job->rendered);
  if (!fits.ok()) return end(job, fits.error());
  next_item(job);
}

void PromptWorkers::end(const Job& job, Result<PreparedPrompt> result) {
  job->job.done(std::move(result));
  forget_job();
}

void PromptWorkers::forget_job() {
  const std::lock_guard lock(mutex_);
  // Under the lock, because finish() may return as soon as it is released.
  if (--jobs_ == 0) idle_.notify_all();
}

}  // namespace valora::serving
