// A base model whose tensors are in memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "adapters/tensors/base_weights.h"

namespace valora::adapters::testing {

class FakeBase final : public BaseWeights {
 public:
  explicit FakeBase(bool tied = false) : tied_(tied) {}
  void add(const std::string& name, std::vector<int64_t> shape, std::vector<float> values) {
    all_[name] = {std::move(shape), std::move(values)};
  }
  std::optional<std::vector<int64_t>> shape_of(const std::string& name) const override {
    const auto it = all_.find(name);
    return it == all_.end() ? std::nullopt : std::optional(it->second.first);
  }
  Result<bool> equal(const std::string& name, size_t first,
                     const TensorView& piece) const override {
    const auto& values = all_.at(name).second;
    EXPECT_LE(first + piece.bytes.size() / sizeof(float), values.size());
    return std::memcmp(values.data() + first, piece.bytes.data(), piece.bytes.size()) == 0;
  }
  Result<std::vector<float>> values_of(const std::string& name) const override {
    return all_.at(name).second;
  }
  // As if W were 0 and B A all ones.
  Result<std::vector<float>> row_norms(const std::string&, const TensorView&, const TensorView& b,
                                       float scale) const override {
    return std::vector<float>(static_cast<size_t>(b.shape[0]), scale);
  }
  Result<std::vector<float>> column_norms(const std::string& name, const TensorView& a,
                                          const TensorView& b, float scale) const override {
    return row_norms(name, a, b, scale);
  }
  bool tied() const override { return tied_; }

 private:
  bool tied_;
  std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> all_;
};

}  // namespace valora::adapters::testing
