#include "models/families/families.h"

#include "models/families/qwen_vl_family.h"
#include "models/towers/qwen2_vl_vision.h"

namespace valora::models {

Family qwen2_vl_family() {
  Family family = qwen_vl_family<Qwen2VlVisionTower>();
  family.boxes = BoxNotation{.scale = 1000, .style = BoxStyle::kMarks};
  return family;
}

}  // namespace valora::models
