#include "models/qwen2_5_vl.h"

#include "models/qwen2_5_vl_vision.h"
#include "models/qwen_vl_family.h"

namespace valora::models {

Family qwen2_5_vl_family() { return qwen_vl_family<Qwen2_5VlVisionTower>(); }

}  // namespace valora::models
