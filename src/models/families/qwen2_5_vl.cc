#include "models/families/qwen2_5_vl.h"

#include "models/families/qwen_vl_family.h"
#include "models/towers/qwen2_5_vl_vision.h"

namespace valora::models {

Family qwen2_5_vl_family() { return qwen_vl_family<Qwen2_5VlVisionTower>(); }

}  // namespace valora::models
