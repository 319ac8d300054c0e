#include "api/answer.h"

namespace valora {

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAbort: break;
  }
  return "abort";
}

}  // namespace valora
