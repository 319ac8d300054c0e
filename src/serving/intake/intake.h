// Accepts requests, has their prompts and forms prepared by workers, and hands them to the engine
// thread. Cancels them in every state.
#pragma once

#include <atomic>
#include <memory>

#include "api/options.h"
#include "base/clock.h"
#include "serving/adapters/adapter_manager.h"
#include "serving/loop/engine_loop.h"
#include "serving/prompts/prompt_workers.h"
#include "serving/request_table.h"
#include "serving/sampling/form_workers.h"
#include "serving/sampling/request_seeds.h"

namespace valora::serving {

// Thread-safe: client threads submit and cancel, the watch cancels. It has no lock of its own. The
// prompt and the grammar of a request are written by one worker each; the last of them to end hands
// the request over, without allocating.
class Intake {
 public:
  // All of them must outlive the intake.
  Intake(const EngineOptions& options, const Frontend& frontend, const AdapterManager& adapters,
         RequestTable& requests, EngineLoop& loop, const Clock& clock);
  // Hands over what is being prepared, as cancelled. The engine thread must still run.
  ~Intake();

  // Engine::submit() and cancel().
  Result<RequestHandle> submit(GenerateRequest request, std::shared_ptr<ResponseSink> sink);
  void cancel(RequestHandle handle);
  // From now on, no compilation of a form begins (FormWorkers::close).
  void close_forms() { form_workers_.close(); }

 private:
  Result<std::shared_ptr<ActiveRequest>> make_request(GenerateRequest request,
                                                      std::shared_ptr<ResponseSink> sink);
  Status accept(const std::shared_ptr<ActiveRequest>& request);
  void prepare_prompt(const std::shared_ptr<ActiveRequest>& request);
  void prepare_form(const std::shared_ptr<ActiveRequest>& request);
  void prepared(ActiveRequest& request);

  const EngineOptions& options_;
  const Frontend& frontend_;
  const AdapterManager& adapters_;
  RequestTable& requests_;
  EngineLoop& loop_;
  const Clock& clock_;
  RequestSeeds seeds_;
  std::atomic<uint64_t> next_handle_ = 1;
  // Declared last, so that the threads end before the members they use are destroyed.
  PromptWorkers prompt_workers_;
  FormWorkers form_workers_;
};

}  // namespace valora::serving
