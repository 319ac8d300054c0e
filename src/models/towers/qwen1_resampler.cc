#include "models/towers/qwen1_resampler.h"

#include <algorithm>
#include <cmath>

#include "models/decoder/layers.h"

namespace valora::models {
namespace {

struct Resampling {
  ops::RunAttention attention;
  Adaptation adaptation;      // for rows of patches
  std::vector<int64_t> rows;  // tokens per item
  at::Tensor queries;         // [queries, heads, dim]
  at::Tensor out;             // [tokens, width]
};

std::vector<int64_t> ends_of(int64_t pictures, int64_t patches) {
  std::vector<int64_t> ends;
  for (int64_t i = 1; i <= pictures; ++i) ends.push_back(i * patches);
  return ends;
}

}  // namespace

void add_resampler_modules(const ResamplerConfig& c, const std::string& prefix,
                           std::vector<adapters::Module>& modules) {
  if (c.projects())
    modules.push_back({prefix + "attn_pool.kv_proj", c.patch_width, c.width, -1, true});
  modules.push_back({prefix + "attn_pool.attn.out_proj", c.width, c.width, -1, true,
                     adapters::ModuleKind::kUnread});
}

at::Tensor interpolated_positions(const at::Tensor& positions, int64_t count) {
  const auto square = [](int64_t n) { return std::llround(std::sqrt(static_cast<double>(n))); };
  const int64_t from = square(positions.size(0)), to = square(count), width = positions.size(1);
  if (from == to) return positions;
  return at::upsample_bicubic2d(
             positions.to(at::kFloat).reshape({1, from, from, width}).permute({0, 3, 1, 2}),
             {to, to}, /*align_corners=*/false)
      .permute({0, 2, 3, 1})
      .reshape({count, width})
      .to(positions.scalar_type());
}

Resampler::Resampler(Weights& weights, const adapters::ModuleTable& modules,
                     const std::string& prefix, const ResamplerConfig& c)
    : config_(c),
      ln_q_(weights, prefix + "attn_pool.ln_q", c.width, c.norm_eps),
      ln_kv_(weights, prefix + "attn_pool.ln_kv", c.width, c.norm_eps),
      ln_post_(weights, prefix + "ln_post", c.width, c.norm_eps),
      query_(weights.get(prefix + "attn_pool.query", {c.queries, c.width})),
      query_positions_(weights.get(prefix + "attn_pool.pos_embed", {c.queries, c.width})),
      key_positions_(interpolated_positions(query_positions_, c.patches)),
      in_proj_weight_(
          weights.get(prefix + "attn_pool.attn.in_proj_weight", {3 * c.width, c.width})),
      in_proj_bias_(weights.get(prefix + "attn_pool.attn.in_proj_bias", {3 * c.width})),
      out_proj_(table_linear(weights, modules, prefix + "attn_pool.attn.out_proj", true)),
      proj_(weights.get(prefix + "proj", {c.width, c.width})) {
  if (c.projects()) kv_proj_ = table_linear(weights, modules, prefix + "attn_pool.kv_proj", false);
}

// part: 0 for queries, 1 for keys, 2 for values.
at::Tensor Resampler::in_projected(const at::Tensor& x, int64_t part) const {
  return at::linear(x, in_proj_weight_.narrow(0, part * config_.width, config_.width),
                    in_proj_bias_.narrow(0, part * config_.width, config_.width));
}

at::Tensor Resampler::queries() const { return in_projected(ln_q_(query_) + query_positions_, 0); }

void Resampler::add_stages(const std::shared_ptr<PatchRun>& patches, Encoding& encoding) const {
  const int64_t rows = patches->x.size(0), each = config_.patches, pictures = rows / each;
  const auto width = static_cast<double>(config_.width);
  const auto run = std::make_shared<Resampling>(Resampling{
      ops::RunAttention(ends_of(pictures, each), config_.heads(), ResamplerConfig::kHeadSize,
                        patches->x.scalar_type(), patches->x.device()),
      patches->adaptation, std::vector<int64_t>(static_cast<size_t>(pictures), config_.queries),
      at::Tensor(), at::empty({pictures * config_.queries, config_.width}, patches->x.options())});
  const double into = config_.projects() ? products_of({&kv_proj_}) : 0;
  encoding.add(
      {rows, into + 2 * width * width, [this, patches, run, each](int64_t begin, int64_t end) {
         at::Tensor x = patches->x.slice(0, begin, end);
         if (config_.projects()) x = kv_proj_(x, run->adaptation.part(begin, end));
         x = ln_kv_(x);
         const at::Tensor places =
             at::arange(begin, end, at::TensorOptions(at::kLong).device(x.device()))
                 .remainder(each);
         const at::Tensor keys = x + key_positions_.index_select(0, places);
         run->attention.store(of_heads(in_projected(keys, 1)), of_heads(in_projected(x, 2)));
       }});
  encoding.add({1, 0, [this, run](int64_t, int64_t) { run->queries = of_heads(queries()); }});
  const double products = 2 * width * static_cast<double>(each) + 2 * width * width;
  encoding.add({pictures, products * static_cast<double>(config_.queries),
                [this, run, each](int64_t begin, int64_t end) {
                  for (int64_t picture = begin; picture < end; ++picture) {
                    std::vector<at::Tensor> attended;  // no more queries than keys at a time
                    for (const at::Tensor& part : run->queries.split(each))
                      attended.push_back(run->attention.attend(picture * each, part));
                    const at::Tensor x = ln_post_(out_proj_(at::cat(attended)));
                    run->out.narrow(0, picture * config_.queries, config_.queries)
                        .copy_(at::matmul(x, proj_));
                  }
                }});
  encoding.finish_with([run] { return split_items(run->out, run->rows); });
}

}  // namespace valora::models
