#include "models/families/families.h"

#include "models/families/qwen_vl_family.h"
#include "models/towers/qwen2_5_vl_vision.h"

namespace valora::models {

Family qwen2_5_vl_family() {
  Family family = qwen_vl_family<Qwen2_5VlVisionTower>();
  family.boxes = BoxNotation{.scale = 0, .style = BoxStyle::kJson};
  return family;
}

}  // namespace valora::models
