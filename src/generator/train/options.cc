#include "generator/train/options.h"

namespace valora::generator {

Json to_json(const TrainingOptions& o) {
  return {{"steps", o.steps},
          {"batch", o.batch},
          {"tokens_per_pass", o.tokens_per_pass},
          {"learning_rate", o.learning_rate},
          {"warmup", o.warmup},
          {"weight_decay", o.weight_decay},
          {"beta1", o.beta1},
          {"beta2", o.beta2},
          {"epsilon", o.epsilon},
          {"clip", o.clip},
          {"dropout", o.dropout},
          {"shuffle", o.shuffle},
          {"seed", o.seed},
          {"evaluate_every", o.evaluate_every},
          {"patience", o.patience}};
}

}  // namespace valora::generator
