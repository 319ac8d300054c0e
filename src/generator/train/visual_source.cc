#include "generator/train/visual_source.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>

namespace valora::generator {
namespace {

// Limits the tower's activations.
constexpr int64_t kPatchesAtOnce = 1 << 14;

// The image or video at this position in the conversation.
Result<MediaRef> medium_of(const ChatPrompt& chat, size_t place) {
  for (const ChatMessage& message : chat.messages)
    for (const ContentPart& part : message.parts)
      if (const auto* medium = std::get_if<MediaRef>(&part); medium && place-- == 0) return *medium;
  return internal("an example has lost one of its media");
}

// Reads one of an example's inputs again. It is an error if the file has changed since.
Result<std::shared_ptr<const media::VisualInput>> reload_input(const serving::Frontend& frontend,
                                                               const Example& example,
                                                               const Example::Visual& visual) {
  VALORA_TRY(prompt, example.prompt());
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (!chat) return internal("an example has lost its media");
  const auto place = static_cast<size_t>(&visual - example.visuals.data());
  VALORA_TRY(medium, medium_of(*chat, place));
  VALORA_TRY(processors, frontend.own_processors(*chat));
  VALORA_TRY(input, frontend.loader()->load(medium.url, serving::media_kind(medium.kind), {},
                                            processors.at(place)));
  if (input->digest == visual.digest) return input;
  return unprocessable(example.origin + ": a picture or video has changed since training began",
                       example.origin);
}

}  // namespace

Status VisualSource::encode(std::vector<Wanted*>& wanted, const ops::AdapterWeights* adapter) {
  std::vector<std::shared_ptr<const media::VisualInput>> inputs;
  std::vector<models::VisualItem> items;
  for (const Wanted* w : wanted) {
    VALORA_TRY(input, reload_input(frontend_, *w->example, *w->visual));
    inputs.push_back(input);
    items.push_back({inputs.back().get(), {}});
    if (adapter) items.back().adapters.push_back({adapter, 1});
  }
  for (size_t begin = 0; begin < items.size();) {
    size_t end = begin + 1;
    int64_t patches = items[begin].input->patch_count();
    while (end < items.size() && (patches += items[end].input->patch_count()) <= kPatchesAtOnce)
      ++end;
    const auto embeddings = model_.encode(std::span(items).subspan(begin, end - begin));
    for (size_t i = begin; i < end; ++i) wanted[i]->embeddings = embeddings[i - begin];
    begin = end;
  }
  return {};
}

Result<std::vector<models::VisualRows>> VisualSource::rows(std::span<const Example* const> examples,
                                                           const ops::AdapterWeights* adapter) {
  std::vector<Wanted> wanted;
  int64_t token = 0;
  for (const Example* example : examples) {
    for (const Example::Visual& visual : example->visuals)
      wanted.push_back(
          {example, &visual, token, adapter ? at::Tensor() : cache_.find(visual.digest)});
    token += static_cast<int64_t>(example->tokens.size());
  }
  std::vector<Wanted*> missing;
  for (Wanted& w : wanted)
    if (!w.embeddings.defined()) missing.push_back(&w);
  if (adapter) {
    VALORA_CHECK(encode(missing, adapter));
  } else if (!missing.empty()) {
    // Encoded one at a time: otherwise the batch composition would affect the last bits, and a
    // training resumed from a checkpoint starts with an empty cache.
    const c10::NoGradGuard no_gradients;
    for (Wanted* w : missing) {
      std::vector<Wanted*> one{w};
      VALORA_CHECK(encode(one, nullptr));
      cache_.insert(w->visual->digest, w->embeddings);
    }
  }
  std::vector<models::VisualRows> rows;
  for (const Wanted& w : wanted) {
    int64_t row = 0;
    for (const Example::Visual::Span& span : w.visual->spans) {
      rows.push_back({w.token + span.token_begin, w.embeddings.narrow(0, row, span.rows)});
      row += span.rows;
    }
  }
  return rows;
}

}  // namespace valora::generator
