#include "lab/ops/decoder_linears.h"

#include "lab/ops/random_tensors.h"

namespace valora::bench {
namespace {

constexpr float kLoraCoefficient = 0.5;

ops::Weight packed(const at::Tensor& w) { return ops::Weight(w, at::kBFloat16, at::kCPU); }

DecoderLayer make_layer(int first_module) {
  int module = first_module;
  const auto make = [&](int64_t out, int64_t in) {
    const int seed = module - first_module + 1;
    return DecoderLinear{packed(weight_tensor(out, in, at::kBFloat16, seed)), module++};
  };
  constexpr int64_t kHidden = kDecoderHidden, kKeys = kDecoderKeyWidth, kInner = kDecoderInner;
  // Braces guarantee this order of evaluation.
  return {make(kHidden, kHidden), make(kKeys, kHidden),  make(kKeys, kHidden),
          make(kHidden, kHidden), make(kInner, kHidden), make(kInner, kHidden),
          make(kHidden, kInner)};
}

}  // namespace

std::vector<DecoderLayer> make_decoder(int64_t layers) {
  std::vector<DecoderLayer> decoder;
  for (int64_t i = 0; i < layers; ++i)
    decoder.push_back(make_layer(static_cast<int>(i) * kLayerLinears));
  return decoder;
}

AdapterValues adapter_values(const DecoderLinear& linear, int64_t rank, int number) {
  const int seed = linear.module % kLayerLinears + 1 + number;
  return {weight_tensor(rank, linear.weight.in(), at::kBFloat16, seed + 10),
          weight_tensor(linear.weight.out(), rank, at::kBFloat16, seed + 50)};
}

ops::AdapterWeights make_adapter(std::span<const DecoderLayer> layers, int64_t rank, int number) {
  ops::AdapterWeights adapter(layers.size() * kLayerLinears);
  for (const DecoderLayer& layer : layers)
    for (const DecoderLinear* l : layer.linears()) {
      const AdapterValues values = adapter_values(*l, rank, number);
      adapter.set(l->module, {packed(values.a), packed(values.b)}, 1);
    }
  adapter.pack_contiguous();
  return adapter;
}

at::Tensor decoder_input(int64_t tokens) {
  return normal_tensor({tokens, kDecoderHidden}, at::kBFloat16, 1, 3);
}

ops::LoraBatch even_segments(int64_t tokens, std::span<const ops::AdapterWeights> adapters) {
  const auto count = static_cast<int64_t>(adapters.size());
  ops::LoraBatch lora;
  for (int64_t a = 0; a < count; ++a)
    lora.add(tokens * a / count, tokens * (a + 1) / count, adapters[a], kLoraCoefficient);
  return lora;
}

at::Tensor run_linears(std::span<const DecoderLayer> layers, const at::Tensor& x,
                       const ops::LoraBatch& lora) {
  at::Tensor y;
  for (const DecoderLayer& layer : layers) {
    const auto module = [](const DecoderLinear& l) {
      return ops::ModuleWeight{&l.weight, l.module};
    };
    const ops::ModuleWeight qkv[] = {module(layer.q), module(layer.k), module(layer.v)};
    const std::vector<at::Tensor> heads = ops::project(x, qkv, lora);
    const at::Tensor attended = ops::linear(heads[0], module(layer.o), lora);
    const at::Tensor inner = ops::gated(attended, module(layer.gate), module(layer.up), lora);
    y = ops::linear(inner, module(layer.down), lora);
  }
  return y;
}

Work work_of(std::span<const DecoderLayer> layers, int64_t tokens) {
  Work work;
  for (const DecoderLayer& layer : layers)
    for (const DecoderLinear* l : layer.linears()) {
      work.bytes += static_cast<double>(l->weight.bytes());
      work.operations += 2.0 * static_cast<double>(tokens * l->weight.out() * l->weight.in());
    }
  return work;
}

}  // namespace valora::bench
