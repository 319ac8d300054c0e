#include "engine/runner/visual_encoder.h"

#include <algorithm>

#include "base/threads/parts_done.h"
#include "engine/adapters/adapter_tensors.h"
#include "engine/runner/model_fault.h"

namespace valora {
namespace {

// Patches of images that are encoded together. A larger batch would not be faster, and would delay
// each image.
constexpr int64_t kPatchesTogether = 1 << 12;

}  // namespace

VisualEncoder::VisualEncoder(const models::Model& model, at::ScalarType dtype, size_t cache_bytes,
                             const Clock& clock, models::PieceSize pieces,
                             ops::LaunchedWork& launched)
    : model_(model),
      dtype_(dtype),
      clock_(clock),
      pieces_(pieces),
      launched_(launched),
      cache_(cache_bytes) {}

int64_t VisualEncoder::Tower::patches() const {
  int64_t sum = 0;
  for (const WantedVisual& visual : visuals) sum += visual.input->patch_count();
  return sum;
}

double VisualEncoder::Tower::left() const {
  const double share = encoding && total > 0 ? encoding->left() / total : 1;
  return share * static_cast<double>(patches());
}

bool VisualEncoder::Tower::has(const Digest& key) const {
  return std::ranges::any_of(visuals, [&](const auto& visual) { return visual.key == key; });
}

const Result<at::Tensor>* VisualEncoder::find(const Digest& key) const {
  const auto it = results_.find(key);
  return it == results_.end() ? nullptr : &it->second;
}

const at::Tensor& VisualEncoder::get(const Digest& key) const {
  const Result<at::Tensor>* result = find(key);
  TORCH_CHECK(result && result->ok(), "an image or video has not been encoded");
  return result->value();
}

void VisualEncoder::request(std::span<const WantedVisual> wanted) {
  needed_.clear();
  for (const WantedVisual& visual : wanted) needed_.insert(visual.key);
  drop_unrequested();
  for (const WantedVisual& visual : wanted) {
    const auto has_it = [&](const Tower& tower) { return tower.has(visual.key); };
    if (results_.contains(visual.key) || std::ranges::any_of(towers_, has_it)) continue;
    if (at::Tensor cached = cache_.find(visual.key); cached.defined())
      results_.emplace(visual.key, std::move(cached));
    else
      add(visual);
  }
}

// An adapter stays in memory only while a request needs it. So if a run has lost a request with
// adapters, request() starts its other images again.
void VisualEncoder::drop_unrequested() {
  std::erase_if(results_, [&](const auto& result) { return !needed_.contains(result.first); });
  towers_.remove_if([&](const Tower& tower) {
    bool needed = false, sound = true;
    for (const WantedVisual& visual : tower.visuals) {
      const bool wanted = needed_.contains(visual.key);
      needed |= wanted;
      sound &= wanted || visual.adapters.empty();
    }
    return !needed || !sound;
  });
}

void VisualEncoder::add(const WantedVisual& visual) {
  if (towers_.empty() || towers_.back().encoding ||
      towers_.back().patches() + visual.input->patch_count() > kPatchesTogether)
    towers_.push_back({{visual}, nullptr, 0});
  else
    towers_.back().visuals.push_back(visual);
}

void VisualEncoder::run(Duration time) {
  if (towers_.empty()) return;
  const TimePoint begin = clock_.now();
  while (!towers_.empty()) {
    advance(next());
    launched_.end_part();
    ++parts_done();
    if (clock_.now() - begin >= time) break;
  }
  launched_.wait();
  work_.seconds += seconds(clock_.now() - begin);
}

std::list<VisualEncoder::Tower>::iterator VisualEncoder::next() {
  oldest_first_ = !oldest_first_;
  if (!oldest_first_) return towers_.begin();
  return std::ranges::min_element(towers_, {}, [](const Tower& tower) { return tower.left(); });
}

void VisualEncoder::begin(Tower& tower) {
  std::vector<models::VisualItem> items;
  for (const WantedVisual& visual : tower.visuals) {
    items.push_back({visual.input.get(), {}});
    for (const serving::AppliedAdapter& use : visual.adapters)
      items.back().adapters.push_back({&weights_of(*use.adapter, 0), use.scale});
  }
  tower.encoding = model_.begin_encoding(std::move(items), pieces_);
  tower.total = tower.encoding->left();
}

void VisualEncoder::finish(Tower& tower) {
  const std::vector<at::Tensor> embeddings = tower.encoding->take();
  for (size_t i = 0; i < tower.visuals.size(); ++i) {
    const WantedVisual& visual = tower.visuals[i];
    TORCH_CHECK(embeddings[i].size(0) == visual.input->tokens, "the vision tower made ",
                embeddings[i].size(0), " embeddings for ", visual.input->tokens, " tokens");
    at::Tensor kept = embeddings[i].to(dtype_);
    ++work_.visuals;
    cache_.insert(visual.key, kept);
    if (needed_.contains(visual.key)) results_.insert_or_assign(visual.key, std::move(kept));
  }
}

// If a run of several images fails, each is encoded on its own, so that one request's image cannot
// fail another's.
void VisualEncoder::advance(std::list<Tower>::iterator tower) {
  try {
    if (!tower->encoding) begin(*tower);
    tower->encoding->advance();
    if (!tower->encoding->done()) return;
    finish(*tower);
  } catch (const std::exception& e) {
    check_device(launched_, e);
    tower->encoding.reset();
    if (tower->visuals.size() > 1) {
      std::list<Tower> alone;
      for (const WantedVisual& visual : tower->visuals) alone.push_back({{visual}, nullptr, 0});
      towers_.splice(tower, alone);
    } else {
      results_.insert_or_assign(tower->visuals[0].key,
                                model_fault("an image could not be encoded", e));
    }
  }
  towers_.erase(tower);
}

}  // namespace valora
