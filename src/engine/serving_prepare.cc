// What workers do for an accepted request before the engine thread gets it.
#include "engine/serving_engine.h"

namespace valora {

Status ServingEngine::still_wanted(const ActiveRequest& request) const {
  if (stopping_) return Error{ErrorCode::kCancelled, "the server was stopped", {}};
  if (request.cancelled) return Error{ErrorCode::kCancelled, "the request was cancelled", {}};
  return {};
}

Result<PreparedPrompt> ServingEngine::prepare_prompt(const ActiveRequest& request) const {
  VALORA_CHECK(still_wanted(request));
  try {
    // A head needs the prompt format of its training, for chat and for classification.
    const bool opens_turn = !request.head || request.head->add_generation_prompt;
    return frontend_->prepare(request.request.prompt, opens_turn, request.adapters);
  } catch (const std::exception& e) {
    return internal(std::string("the prompt could not be prepared: ") + e.what());
  }
}

void ServingEngine::prepare(const std::shared_ptr<ActiveRequest>& request) {
  request->prompt = prepare_prompt(*request);
  request->request.prompt = std::string();  // frees data: URLs, which may hold megabytes
  prepared(request);
}

void ServingEngine::prepare_grammar(const std::shared_ptr<ActiveRequest>& request) {
  if (const Status wanted = still_wanted(*request); !wanted.ok())
    request->grammar = wanted.error();
  else
    request->grammar = grammars_->start(*request->request.constraint);
  prepared(request);
}

// The worker that is the last one hands the request over.
void ServingEngine::prepared(const std::shared_ptr<ActiveRequest>& request) {
  if (--request->preparations > 0) return;
  {
    const std::lock_guard lock(mutex_);
    --preparing_;
    inbox_.push_back([request](EngineCore& core) { core.admit(request); });
  }
  wake_.notify_one();
}

}  // namespace valora
