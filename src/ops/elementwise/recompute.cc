#include "ops/elementwise/recompute.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace valora::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Keeps the part in the autograd graph.
struct HeldPart : torch::CustomClassHolder {
  explicit HeldPart(Part part) : part(std::move(part)) {}
  Part part;
};

struct Recomputed : torch::autograd::Function<Recomputed> {
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<HeldPart>& held,
                               at::TensorList inputs) {
    context->save_for_backward(inputs.vec());
    context->saved_data["part"] = c10::IValue::make_capsule(held);
    const c10::NoGradGuard no_gradients;
    return held->part(inputs.vec());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held =
        c10::static_intrusive_pointer_cast<HeldPart>(context->saved_data["part"].toCapsule());
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables())
      inputs.push_back(saved.detach().set_requires_grad(at::isFloatingType(saved.scalar_type())));
    variable_list outputs, wanted;
    {
      const c10::AutoGradMode gradients_on(true);
      const variable_list all = held->part(inputs);
      for (size_t i = 0; i < all.size(); ++i)
        if (gradients[i].defined() && all[i].requires_grad())
          outputs.push_back(all[i]), wanted.push_back(gradients[i]);
    }
    if (!outputs.empty()) torch::autograd::backward(outputs, wanted);
    variable_list result{at::Tensor()};  // no gradient for the part itself
    for (const at::Tensor& input : inputs) result.push_back(input.grad());
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> recomputed(const Part& part, const std::vector<at::Tensor>& inputs) {
  return Recomputed::apply(c10::make_intrusive<HeldPart>(part), at::TensorList(inputs));
}

}  // namespace valora::ops
