// Of builds with a torch that has no CUDA.
#include "engine/decode_graphs.h"

namespace valora {

std::unique_ptr<DecodeGraphs> DecodeGraphs::make(const models::Model&, const ops::KvArena&) {
  return nullptr;
}

}  // namespace valora
