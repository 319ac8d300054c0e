// The threads that prepare prompts. Text is rendered and tokenized at once; media are fetched and
// prepared one item after the other, and between items, other clients have their turn. Long texts,
// what waits for other hosts, images, and videos are on threads of their own, so that the slower
// never delays the quicker; media that are prepared already need none of the last three.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/fair_pool.h"
#include "serving/prompts/frontend.h"

namespace valora::serving {

struct PromptJob {
  uint64_t id = 0;
  std::string client;  // whose jobs take turns with those of others
  Prompt prompt;
  bool add_generation_prompt = true;
  std::optional<int> keep_tokens = {};  // GenerateRequest::truncate_prompt_tokens
  std::vector<AppliedAdapter> adapters;
  std::stop_token stop;  // the result is not wanted any more: `done` soon gets kCancelled
  std::function<void(Result<PreparedPrompt>)>
      done;  // called once, mostly on a worker; not to throw
};

class PromptWorkers {
 public:
  // media_workers: threads for images, and as many for videos. fetches: whether http(s) URLs are
  // allowed. The frontend must outlive it.
  PromptWorkers(const Frontend& frontend, int media_workers, bool fetches);
  ~PromptWorkers() { finish(); }

  // Throws std::bad_alloc: the job was not taken, and is not done.
  void prepare(PromptJob job);
  // Waits for all jobs. To end soon, request their stops before.
  void finish();
  // Call after the stop of a job was requested: it leaves its queue. Takes no memory.
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
  void end_elsewhere(const std::string& client, uint64_t id, const FairPool::Job& job);
  void forget_job();

  const Frontend& frontend_;
  std::mutex mutex_;
  std::condition_variable idle_;
  int jobs_ = 0;
  FairPool texts_, long_texts_, local_, images_, videos_;
  std::unique_ptr<FairPool> remote_;  // null if nothing is fetched from other hosts
};

}  // namespace valora::serving
