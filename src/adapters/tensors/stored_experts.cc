#include "adapters/tensors/stored_experts.h"

#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/text/strings.h"

namespace valora::adapters {
namespace {

constexpr std::string_view kWrapped = ".base_layer";
constexpr char kGate[] = ".gate_proj", kUp[] = ".up_proj", kDown[] = ".down_proj";

// The low-rank products of one tensor of all experts: what the file has as A is [experts · rank,
// columns], its B [rows, rank · experts]. A linear's delta is B A, or if `swapped` its transpose.
struct Factors {
  const TensorView &a, &b;
  int64_t experts, rank;
  bool swapped;
};

// Copies element (row, column) of a matrix.
struct Copier {
  const TensorView& from;
  std::vector<uint8_t>& to;
  size_t size = dtype_size(from.dtype);
  void add(int64_t row, int64_t column) {
    const uint8_t* const value =
        from.bytes.data() + static_cast<size_t>(row * from.shape[1] + column) * size;
    to.insert(to.end(), value, value + size);
  }
};

// A [rank, in] of one expert.
void append_a(const Factors& f, int64_t expert, std::vector<uint8_t>& to) {
  if (!f.swapped) {
    const size_t size = static_cast<size_t>(f.rank * f.a.shape[1]) * dtype_size(f.a.dtype);
    const uint8_t* const rows = f.a.bytes.data() + static_cast<size_t>(expert) * size;
    to.insert(to.end(), rows, rows + size);
    return;
  }
  Copier copy{f.b, to};
  for (int64_t k = 0; k < f.rank; ++k)
    for (int64_t i = 0; i < f.b.shape[0]; ++i) copy.add(i, k * f.experts + expert);
}

// Rows [first, first + out) of B [.., rank] of one expert.
void append_b(const Factors& f, int64_t expert, int64_t first, int64_t out,
              std::vector<uint8_t>& to) {
  Copier copy{f.swapped ? f.a : f.b, to};
  for (int64_t o = first; o < first + out; ++o)
    for (int64_t k = 0; k < f.rank; ++k)
      if (f.swapped)
        copy.add(expert * f.rank + k, o);
      else
        copy.add(o, k * f.experts + expert);
}

// Where a matrix begins in the values of all that are made together.
struct Place {
  TensorView* view;
  size_t begin;
};

void set_bytes(const std::vector<Place>& places, std::span<const uint8_t> bytes) {
  for (const Place& place : places)
    place.view->bytes = bytes.subspan(place.begin, byte_size(*place.view));
}

}  // namespace

std::string stored_parameter_of(const Module& module, const std::string& name) {
  if (module.mixture != Module::Mixture::kExpert) return "";
  const size_t part = name.rfind('.'), expert = name.rfind('.', part - 1);
  return name.substr(0, expert) + (name.substr(part) == kDown ? ".down_proj" : ".gate_up_proj");
}

Result<bool> StoredExperts::take(const std::string& tensor, const TensorName& name,
                                 const TensorView& view) {
  std::string experts = name.module;
  while (experts.ends_with(kWrapped)) experts.resize(experts.size() - kWrapped.size());
  const auto first = modules_.find(experts + ".0" + kGate);
  if (!first || modules_.modules()[*first].mixture != Module::Mixture::kExpert) return false;
  if (name.role != TensorRole::kLoraA && name.role != TensorRole::kLoraB)
    return unprocessable("tensor \"" + shortened(tensor) +
                         "\" is of all experts, of which only lora_A and lora_B are served");
  Pair& pair = pairs_[{*first, name.module}];
  pair.name = experts;
  const bool is_a = name.role == TensorRole::kLoraA;
  const TensorView*& half = is_a ? pair.a : pair.b;
  if (half)
    return unprocessable("tensor \"" + shortened(tensor) + "\" is the second one of its kind");
  half = &view;
  (is_a ? pair.a_tensor : pair.b_tensor) = tensor;
  return true;
}

Status StoredExperts::split(AdapterContents& contents) const {
  for (const auto& [key, pair] : pairs_) {
    if (!pair.a || !pair.b)
      return unprocessable(pair.name + " has no " + (pair.a ? "lora_B" : "lora_A") + " weight");
    VALORA_CHECK(split_pair(key.first, pair, contents));
  }
  return {};
}

Status StoredExperts::split_pair(int first, const Pair& pair, AdapterContents& contents) const {
  const Module& gate = modules_.modules()[first];
  const std::string canonical = gate.name.substr(0, gate.name.size() - std::strlen(kGate) - 2);
  const auto module = [&](int64_t expert, const char* part) {
    return modules_.find(canonical + "." + std::to_string(expert) + part);
  };
  int64_t experts = 0;
  while (module(experts, kGate)) ++experts;
  const auto refused = [&](const std::string& why) {
    return unprocessable("tensors \"" + shortened(pair.a_tensor) + "\" and \"" +
                         shortened(pair.b_tensor) + "\" of all experts " + why);
  };
  const TensorView &a = *pair.a, &b = *pair.b;
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[1] ||
      a.shape[0] % experts != 0 || a.dtype != b.dtype)
    return refused("do not fit together");
  const int64_t hidden = gate.in, width = gate.out, in = a.shape[1], out = b.shape[0];
  if (hidden == width || hidden == 2 * width)
    return refused("cannot be told apart by their shapes");
  const bool both = (in == hidden && out == 2 * width) || (in == 2 * width && out == hidden);
  const bool down = (in == width && out == hidden) || (in == hidden && out == width);
  if (!both && !down) return refused("have shapes that the experts do not have");
  // Before release 0.19, PEFT took a parameter's axes in the other order.
  const bool swapped = both ? in == 2 * width : in == hidden;
  const Factors factors{a, b, experts, a.shape[0] / experts, swapped};
  const bool headers = a.bytes.empty();
  auto bytes = std::make_shared<std::vector<uint8_t>>();
  std::vector<Place> places;
  bool twice = false;
  for (int64_t e = 0; e < experts; ++e) {
    const auto add = [&](const char* part, int64_t first_row, int64_t rows, int64_t columns) {
      LoraHalves& halves = contents.modules[*module(e, part)];
      twice = twice || halves.a || halves.b;
      const auto matrix = [&](int64_t n, int64_t k) {
        contents.made.push_back({a.dtype, {n, k}, {}});
        places.push_back({&contents.made.back(), bytes->size()});
        return &contents.made.back();
      };
      halves.name = pair.name + "." + std::to_string(e) + part;
      halves.stored_together = true;
      halves.owner = bytes;
      halves.a_tensor = pair.a_tensor;
      halves.b_tensor = pair.b_tensor;
      halves.a = matrix(factors.rank, columns);
      if (!headers) append_a(factors, e, *bytes);
      halves.b = matrix(rows, factors.rank);
      if (!headers) append_b(factors, e, first_row, rows, *bytes);
    };
    if (both) {
      add(kGate, 0, width, hidden);
      add(kUp, width, width, hidden);
    } else {
      add(kDown, 0, hidden, width);
    }
  }
  if (twice) return refused("are not the only ones of their linears");
  if (!headers) set_bytes(places, *bytes);
  return {};
}

}  // namespace valora::adapters
