// The size of an adapter's low-rank products beside that of the weights that they change.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "engine/inspect/inspect.h"

namespace valora {

// Frobenius norms over the linears of one part of the model that have a low-rank product.
struct PartNorms {
  std::string part;    // ChangedPart::name
  double change = 0;   // of scale · B A
  double weights = 0;  // of W as the model computes with it
};

// The report must have a model and be without problems. Reads the weights of all adapted linears,
// on the calling thread. Errors: the checkpoint is incomplete or cannot be read.
Result<std::vector<PartNorms>> norms_of(const AdapterReport& report);

}  // namespace valora
