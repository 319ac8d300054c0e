#include "models/qwen2_vl.h"

#include "models/qwen2_vl_vision.h"
#include "models/qwen_vl_family.h"

namespace valora::models {

Family qwen2_vl_family() { return qwen_vl_family<Qwen2VlVisionTower>(); }

}  // namespace valora::models
