// The threads that prepare prompts. Text is rendered and tokenized in one go; media are fetched and
// prepared item by item, and other clients get their turn between items. Long texts, requests to
// other hosts, images and videos each have separate threads, so that slow work never delays quick
// work; already prepared media need none of the last three.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/threads/fair_pool.h"
#include "serving/prompts/frontend.h"

namespace valora::serving {

struct PromptJob {
  uint64_t id = 0;
  std::string client;  // clients take turns
  Prompt prompt;
  bool add_generation_prompt = true;
  std::optional<int> keep_tokens = {};  // GenerateRequest::truncate_prompt_tokens
  std::vector<AppliedAdapter> adapters;
  std::stop_token stop;  // the result is no longer needed: `done` soon gets kCancelled
  std::function<void(Result<PreparedPrompt>)>
      done;  // called once, usually on a worker; must not throw
};

class PromptWorkers {
 public:
  // media_workers: number of threads for images, and again for videos. fetches: whether http(s)
  // URLs are allowed. The frontend must outlive this object.
  PromptWorkers(const Frontend& frontend, int media_workers, bool fetches);
  ~PromptWorkers() { finish(); }

  // If it throws std::bad_alloc, the job was not accepted, and `done` is not called.
  void prepare(PromptJob job);
  // Waits for all jobs. To finish soon, request their stops first.
  void finish();
  // Call after requesting a job's stop: removes it from its queue. Does not allocate.
  void stopped(const std::string& client, uint64_t id);

 private:
  struct Progress;
  using Job = std::shared_ptr<Progress>;
  using Step = void (PromptWorkers::*)(const Job&);

  void post(FairPool& pool, const Job& job, Step step);
  void run(const Job& job, Step step);
  void begin(const Job& job);
  void next_item(const Job& job);
  void fetch(const Job& job);
  void load(const Job& job);
  void loaded(const Job& job, std::shared_ptr<const media::VisualInput> input);
  void end(const Job& job, Result<PreparedPrompt> result);
  void end_on_worker(const std::string& client, uint64_t id, const FairPool::Job& job);
  void forget_job();

  const Frontend& frontend_;
  std::mutex mutex_;
  std::condition_variable idle_;
  int jobs_ = 0;
  FairPool texts_, long_texts_, local_, images_, videos_;
  std::unique_ptr<FairPool> remote_;  // null if nothing may be fetched from other hosts
};

}  // namespace valora::serving
