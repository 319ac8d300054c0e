#include "models/towers/qwen_vision_blocks.h"

#include "models/decoder/layers.h"

namespace valora::models {

QwenVisionBlock read_qwen_vision_block(Weights& weights, const adapters::ModuleTable& modules,
                                       const std::string& prefix, int64_t width, const char* fc1,
                                       const char* fc2) {
  const auto linear = [&](const char* name) {
    return table_linear(weights, modules, prefix + name, true);
  };
  return {LayerNorm(weights, prefix + "norm1", width, kQwenVisionNormEps),
          LayerNorm(weights, prefix + "norm2", width, kQwenVisionNormEps),
          linear("attn.qkv"),
          linear("attn.proj"),
          linear(fc1),
          linear(fc2)};
}

// Two stages, because a row needs the keys of all rows but nothing else from them.
void add_qwen_vision_block(const QwenVisionBlock& block, Activation activation,
                           const std::shared_ptr<QwenVisionRun>& run, Encoding& encoding) {
  const int64_t patches = run->x.size(0);
  encoding.add({patches, products_of({&block.qkv}), [run, &block](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->rows.patch_adaptation.part(begin, end);
                  const at::Tensor x = block.norm1(as_read(run->x.slice(0, begin, end)));
                  run->attention.store_rotated(begin, block.qkv(x, adaptation), run->angles);
                }});
  encoding.add({patches,
                run->attention.products() + products_of({&block.proj, &block.fc1, &block.fc2}),
                [activation, run, &block](int64_t begin, int64_t end) {
                  const Adaptation adaptation = run->rows.patch_adaptation.part(begin, end);
                  const at::Tensor x = run->x.slice(0, begin, end);
                  x.add_(block.proj(run->attention.attend(begin, end), adaptation));
                  const at::Tensor inner = block.fc1(block.norm2(as_read(x)), adaptation);
                  x.add_(block.fc2(activate(inner, activation), adaptation));
                }});
}

}  // namespace valora::models
