#include "ops/lora/lora.h"

#include <algorithm>

#include "ops/weights/pack_contiguous.h"

namespace valora::ops {
namespace {

kernels::LoraFactor factor_of(const Weight& w) {
  if (w.form() == WeightForm::kPlain) return {};
  return {.data = w.data().const_data_ptr(), .pieces = nullptr, .panels_per_piece = 0};
}

}  // namespace

AdapterWeights::AdapterWeights(size_t modules, PanelLayout layout)
    : modules_(modules), layout_(std::move(layout)), pieces_(layout_->pieces().size()) {
  for (const PanelLayout::Module& m : layout_->modules()) {
    const LoraShape& s = m.shape;
    TORCH_CHECK(s.module < 0 || static_cast<size_t>(s.module) >= modules || !touches(s.module),
                "an adapter twice on module ", s.module);
    touch(s.module) = {{}, {}, s.rank, s.in, s.out, s.scale};
    max_rank_ = std::max(max_rank_, s.rank);
    format_ = {layout_->form(), layout_->dtype()};
  }
}

void AdapterWeights::check_module(int module) const {
  TORCH_CHECK(module >= 0 && static_cast<size_t>(module) < model_modules(), "module ", module,
              " is out of range: the model has ", model_modules());
}

kernels::LoraModule& AdapterWeights::touch(int module) {
  check_module(module);
  return modules_.add(module);
}

void AdapterWeights::set(int module, LoraWeight weight, float scale) {
  const Weight &a = weight.a, &b = weight.b;
  TORCH_CHECK(!layout_, "the modules of a paged adapter are those of its layout");
  TORCH_CHECK(
      a.out() == b.in() && a.format() == b.format() && a.format() == format_.value_or(a.format()),
      "adapter factors [", b.out(), ", ", b.in(), "] x [", a.out(), ", ", a.in(),
      "] do not match in rank, layout or dtype");
  touch(module) = {factor_of(a), factor_of(b), a.out(), a.in(), b.out(), scale};
  format_ = a.format();
  max_rank_ = std::max(max_rank_, a.out());
  weights_[module] = std::move(weight);
  on_device_ = nullptr;
}

void AdapterWeights::place(std::span<std::byte* const> blocks) {
  TORCH_CHECK(layout_ && blocks.size() == static_cast<size_t>(layout_->blocks()),
              "an adapter placed in ", blocks.size(), " blocks instead of ",
              layout_ ? layout_->blocks() : 0);
  const auto all = layout_->pieces();
  for (size_t i = 0; i < all.size(); ++i) pieces_[i] = blocks[all[i].block] + all[i].offset;
  // A factor in one piece is contiguous; reading it needs no division by panels_per_piece.
  const auto placed = [&](const PanelLayout::Factor& f) {
    const void* const* first = &pieces_[f.first_piece];
    return f.piece_count == 1
               ? kernels::LoraFactor{*first, nullptr, 0}
               : kernels::LoraFactor{nullptr, first, f.panels_per_piece, f.inputs_per_piece};
  };
  for (const PanelLayout::Module& m : layout_->modules()) {
    kernels::LoraModule& entry = *modules_.find(m.shape.module);
    entry.a = placed(m.a);
    entry.b = placed(m.b);
  }
  placed_ = true;
  on_device_ = nullptr;
}

void AdapterWeights::unplace() {
  TORCH_CHECK(layout_, "an adapter that owns its weights cannot be unplaced");
  for (const PanelLayout::Module& m : layout_->modules())
    modules_.find(m.shape.module)->a = modules_.find(m.shape.module)->b = {};
  placed_ = false;
  on_device_ = nullptr;
  outputs_on_device_ = nullptr;
}

void AdapterWeights::set_output(int module, OutputChange change) {
  check_module(module);
  for (const at::Tensor& values : {change.shift, change.gain})
    TORCH_CHECK(!values.defined() ||
                    (values.is_cpu() && values.dim() == 1 && values.scalar_type() == at::kFloat),
                "an output change must be a float vector in host memory");
  outputs_[module] = std::move(change);
  changed_.resize(touched().size());
  changed_[module / 64] |= uint64_t{1} << (module % 64);
  outputs_on_device_ = nullptr;
}

void AdapterWeights::pack_contiguous() {
  std::vector<Weight*> all;
  for (auto& [module, weight] : weights_) all.insert(all.end(), {&weight.a, &weight.b});
  ops::pack_contiguous(all);
  for (const auto& [module, weight] : weights_) {
    modules_.find(module)->a = factor_of(weight.a);
    modules_.find(module)->b = factor_of(weight.b);
  }
}

void LoraBatch::add(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                    float coefficient) {
  const size_t known = segments_.size();
  add_segment(token_begin, token_end, adapter, coefficient);
  if (segments_.size() > known) also_touch(adapter.touched());
}

void LoraBatch::add_segment(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                            float coefficient) {
  TORCH_CHECK(0 <= token_begin && token_begin <= token_end, "[", token_begin, ", ", token_end,
              ") is not a segment of tokens");
  TORCH_CHECK(adapter.resident(), "an adapter in the batch is not resident; place it first");
  token_end_ = std::max(token_end_, token_end);
  on_device_ = nullptr;
  for (size_t i = segments_.size(); i-- > 0;) {
    kernels::LoraSegment& s = segments_[i];
    if (adapters_[i] != &adapter || s.coefficient != coefficient || s.token_end != token_begin)
      continue;
    s.token_end = token_end;
    return;
  }
  TORCH_CHECK(adapters_.empty() || adapters_[0]->model_modules() == adapter.model_modules(),
              "adapters of models of ", adapters_[0]->model_modules(), " and ",
              adapter.model_modules(), " modules in one batch");
  TORCH_CHECK(!format_ || !adapter.format() || format_ == adapter.format(),
              "adapters of different layouts or dtypes in one batch");
  if (!format_) format_ = adapter.format();
  segments_.push_back({token_begin, token_end, adapter.modules(), coefficient});
  adapters_.push_back(&adapter);
}

void LoraBatch::add_outputs(int64_t token_begin, int64_t token_end, const AdapterWeights& adapter,
                            float coefficient) {
  const size_t known = outputs_.size();
  add_output_segment(token_begin, token_end, adapter, coefficient);
  if (outputs_.size() > known) also_change(adapter.changed());
}

void LoraBatch::add_output_segment(int64_t token_begin, int64_t token_end,
                                   const AdapterWeights& adapter, float coefficient) {
  if (adapter.outputs().empty() || token_begin == token_end) return;
  TORCH_CHECK(0 <= token_begin && token_begin < token_end, "[", token_begin, ", ", token_end,
              ") is not a segment of tokens");
  token_end_ = std::max(token_end_, token_end);
  on_device_ = nullptr;
  if (!outputs_.empty()) {
    OutputSegment& last = outputs_.back();
    if (last.adapter == &adapter && last.coefficient == coefficient &&
        last.token_end == token_begin) {
      last.token_end = token_end;
      return;
    }
  }
  outputs_.push_back({token_begin, token_end, &adapter, coefficient});
}

void LoraBatch::include(Bits& bits, std::span<const uint64_t> more) {
  if (more.empty()) return;
  if (!bits)
    bits = std::make_shared<std::vector<uint64_t>>();
  else if (bits.use_count() > 1)
    bits = std::make_shared<std::vector<uint64_t>>(*bits);
  bits->resize(std::max(bits->size(), more.size()));
  for (size_t i = 0; i < more.size(); ++i) (*bits)[i] |= more[i];
}

template <typename Place>
LoraBatch LoraBatch::renumbered(const Place& place) const {
  LoraBatch cut;
  for (size_t i = 0; i < segments_.size(); ++i) {
    const kernels::LoraSegment& s = segments_[i];
    const int64_t first = place(s.token_begin), last = place(s.token_end);
    if (first < last) cut.add_segment(first, last, *adapters_[i], s.coefficient);
  }
  for (const OutputSegment& s : outputs_) {
    const int64_t first = place(s.token_begin), last = place(s.token_end);
    if (first < last) cut.add_output_segment(first, last, *s.adapter, s.coefficient);
  }
  cut.touched_ = touched_;
  cut.changed_ = changed_;
  return cut;
}

LoraBatch LoraBatch::part(int64_t begin, int64_t end) const {
  return renumbered([&](int64_t token) { return std::clamp(token, begin, end) - begin; });
}

LoraBatch LoraBatch::of_tokens(std::span<const int64_t> tokens) const {
  LoraBatch cut = renumbered(
      [&](int64_t token) { return std::ranges::lower_bound(tokens, token) - tokens.begin(); });
  cut.set_dropout(dropout_);
  return cut;
}

}  // namespace valora::ops
