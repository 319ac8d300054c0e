#include "server/handlers/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/handlers/batches/batch_access.h"
#include "server/handlers/generation/generation.h"
#include "server/handlers/handlers.h"
#include "server/handlers/ollama/ollama.h"
#include "server/handlers/page/page.h"
#include "server/handlers/page/page_samples.h"
#include "server/handlers/pooled/embeddings.h"
#include "server/handlers/streams/streams.h"

namespace valora::server {
namespace {

constexpr bool kOpen = true, kModelWork = true, kChanges = true, kMessages = true;

bool has_page(const ServerOptions& options) { return options.page; }
bool has_ollama(const ServerOptions& options) { return options.ollama_api; }

constexpr std::array kRoutes = {
    Route{"POST", "/v1/chat/completions", handle_chat, "Answer a conversation", !kOpen, kModelWork},
    Route{"POST", "/v1/completions", handle_completion, "Complete a text", !kOpen, kModelWork},
    Route{"POST", "/v1/responses", handle_responses, "Answer a conversation as a response", !kOpen,
          kModelWork},
    Route{"POST", "/v1/analyze", handle_analyze, "Ask several models about a picture or a clip",
          !kOpen, kModelWork},
    Route{"POST", "/classify", handle_classify, "Classify with an adapter's head", !kOpen,
          kModelWork},
    Route{"POST", "/v1/classify", handle_classify, "Classify with an adapter's head", !kOpen,
          kModelWork},
    Route{"POST", "/v1/embeddings", handle_embeddings, "Embed texts or a conversation", !kOpen,
          kModelWork},
    Route{"POST", "/rerank", handle_rerank, "Order documents by a query", !kOpen, kModelWork},
    Route{"POST", "/v1/rerank", handle_rerank, "Order documents by a query", !kOpen, kModelWork},
    Route{"POST", "/v2/rerank", handle_rerank, "Order documents by a query", !kOpen, kModelWork},
    Route{"POST", "/score", handle_score, "Score pairs of texts or pictures", !kOpen, kModelWork},
    Route{"POST", "/v1/score", handle_score, "Score pairs of texts or pictures", !kOpen,
          kModelWork},
    Route{"GET", "/v1/models", handle_models, "List the base model and the adapters"},
    Route{"GET", kModelPrefix, handle_model, "Describe a model"},
    Route{"POST", "/v1/load_lora_adapter", handle_load_lora, "Load an adapter", !kOpen, kModelWork,
          kChanges},
    Route{"POST", "/v1/unload_lora_adapter", handle_unload_lora, "Unload an adapter", !kOpen,
          kModelWork, kChanges},
    Route{"POST", "/v1/pin_lora_adapter", handle_pin_lora, "Keep an adapter in the pool", !kOpen,
          kModelWork, kChanges},
    Route{"POST", "/v1/unpin_lora_adapter", handle_unpin_lora, "Let an adapter leave the pool",
          !kOpen, kModelWork, kChanges},
    Route{"POST", kUploadPath, handle_upload_lora, "Upload an adapter and load it", !kOpen,
          kModelWork, kChanges, nullptr, check_upload_header},
    Route{"POST", kFilesPath, with_batches<handle_upload_file>, "Upload the input of a batch",
          !kOpen, kModelWork, kChanges, nullptr, check_file_header},
    Route{"GET", kFilesPath, with_batches<handle_files>, "List files"},
    Route{"GET", "/v1/files/{file_id}", with_batches<handle_file>, "Describe a file"},
    Route{"GET", "/v1/files/{file_id}/content", with_batches<handle_file_content>,
          "The content of a file"},
    Route{"DELETE", "/v1/files/{file_id}", with_batches<handle_delete_file>, "Delete a file",
          !kOpen, !kModelWork, kChanges},
    Route{"POST", kBatchesPath, with_batches<handle_create_batch>, "Begin a batch of requests",
          !kOpen, kModelWork, kChanges},
    Route{"GET", kBatchesPath, with_batches<handle_batches>, "List batches"},
    Route{"GET", "/v1/batches/{batch_id}", with_batches<handle_batch>, "Describe a batch"},
    Route{"POST", "/v1/batches/{batch_id}/cancel", with_batches<handle_cancel_batch>,
          "Cancel a batch", !kOpen, !kModelWork, kChanges},
    Route{"GET", "/props", handle_props, "Describe a model as llama.cpp's server does"},
    Route{"POST", kStreamsPath, handle_create_stream, "Begin a stream", !kOpen, kModelWork,
          kChanges},
    Route{"GET", kStreamsPath, handle_streams, "List streams"},
    Route{"GET", "/v1/streams/{stream_id}", handle_stream, "Describe a stream"},
    Route{"DELETE", "/v1/streams/{stream_id}", handle_delete_stream, "End a stream", !kOpen,
          !kModelWork, kChanges},
    Route{"POST", "/v1/streams/{stream_id}/pause", handle_pause_stream, "Pause a stream", !kOpen,
          !kModelWork, kChanges},
    Route{"POST", "/v1/streams/{stream_id}/resume", handle_resume_stream, "Go on with a stream",
          !kOpen, !kModelWork, kChanges},
    Route{"POST", "/v1/streams/{stream_id}/frames", handle_push_frame, "Push a frame", !kOpen,
          !kModelWork, kChanges, nullptr, check_frame_header, kMessages},
    Route{"GET", "/v1/streams/{stream_id}/frames/{frame_id}", handle_frame, "A frame"},
    Route{"GET", "/v1/streams/{stream_id}/events", handle_stream_events, "Events of a stream"},
    Route{"GET", "/v1/lora_adapters", handle_lora_adapters, "Describe the loaded adapters"},
    Route{"GET", "/v1/applications", handle_applications, "Attainment of latency targets"},
    Route{"POST", "/tokenize", handle_tokenize, "Tokens of a prompt"},
    Route{"POST", "/detokenize", handle_detokenize, "Text of tokens"},
    Route{"GET", "/v1/stats", handle_stats, "What the server does now"},
    Route{"GET", "/health", handle_health, "Whether the server serves", kOpen},
    Route{"GET", "/ready", handle_health, "Whether the server takes requests", kOpen},
    Route{"GET", "/ping", handle_health, "Whether the server serves", kOpen},
    Route{"POST", "/ping", handle_health, "Whether the server serves", kOpen},
    Route{"GET", "/metrics", handle_metrics, "Metrics for Prometheus", kOpen},
    Route{"GET", "/load", handle_load, "Requests under way", kOpen},
    Route{"GET", "/version", handle_version, "Version of the server", kOpen},
    Route{"GET", "/openapi.json", handle_openapi, "This document", kOpen},
    Route{"GET", "/tokenizer_info", handle_tokenizer_info, "Settings of the tokenizer", !kOpen,
          !kModelWork, !kChanges,
          [](const ServerOptions& options) { return options.tokenizer_info.has_value(); }},
    Route{"POST", "/api/chat", ollama::handle_chat, "Ollama: answer a conversation", !kOpen,
          kModelWork, !kChanges, has_ollama},
    Route{"POST", "/api/generate", ollama::handle_generate, "Ollama: answer a prompt", !kOpen,
          kModelWork, !kChanges, has_ollama},
    Route{"POST", "/api/embed", ollama::handle_embed, "Ollama: embed texts", !kOpen, kModelWork,
          !kChanges, has_ollama},
    Route{"POST", "/api/embeddings", ollama::handle_embed, "Ollama: embed a text", !kOpen,
          kModelWork, !kChanges, has_ollama},
    Route{"GET", "/api/tags", ollama::handle_tags, "Ollama: list the models", !kOpen, !kModelWork,
          !kChanges, has_ollama},
    Route{"GET", "/api/ps", ollama::handle_tags, "Ollama: list the models", !kOpen, !kModelWork,
          !kChanges, has_ollama},
    Route{"POST", "/api/show", ollama::handle_show, "Ollama: describe a model", !kOpen, !kModelWork,
          !kChanges, has_ollama},
    Route{"GET", "/api/version", ollama::handle_version, "Ollama: version of the server", !kOpen,
          !kModelWork, !kChanges, has_ollama},
    Route{"GET", "/", handle_page, "", kOpen, !kModelWork, !kChanges, has_page},
    Route{"GET", "/docs", handle_page, "", kOpen, !kModelWork, !kChanges, has_page},
    Route{"GET", "/ui/samples", handle_samples, "", !kOpen, !kModelWork, !kChanges, has_page},
    Route{"GET", kSamplePrefix, handle_sample, "", !kOpen, !kModelWork, !kChanges, has_page},
    Route{"GET", kPagePrefix, handle_page, "", kOpen, !kModelWork, !kChanges, has_page},
};

bool has(const ServerOptions& options, const Route& route) {
  return route.enabled == nullptr || route.enabled(options);
}

bool method_matches(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// The part up to the next slash, which it takes off.
std::string_view next_segment(std::string_view& path) {
  const size_t slash = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, slash);
  path.remove_prefix(std::min(path.size(), slash + 1));
  return segment;
}

// "{…}" in the pattern stands for any segment that is not empty.
bool segments_match(std::string_view pattern, std::string_view path) {
  if (std::ranges::count(pattern, '/') != std::ranges::count(path, '/')) return false;
  while (!pattern.empty() || !path.empty()) {
    const std::string_view wanted = next_segment(pattern), segment = next_segment(path);
    if (wanted.starts_with('{') ? segment.empty() : wanted != segment) return false;
  }
  return true;
}

}  // namespace

std::span<const Route> all_routes() { return kRoutes; }

bool path_matches(const Route& route, std::string_view path) {
  if (route.path.find('{') != route.path.npos) return segments_match(route.path, path);
  return route.path.size() > 1 && route.path.ends_with('/') ? path.starts_with(route.path)
                                                            : path == route.path;
}

const Route* find_route(const ServerOptions& options, std::string_view method,
                        std::string_view path) {
  const auto found = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& route) {
    return path_matches(route, path) && method_matches(route, method) && has(options, route);
  });
  return found == kRoutes.end() ? nullptr : &*found;
}

std::string methods_of(const ServerOptions& options, std::string_view path) {
  std::string methods;
  for (const Route& route : kRoutes)
    if (path_matches(route, path) && has(options, route))
      methods += route.method == "GET" ? "GET, HEAD, " : fmt::format("{}, ", route.method);
  return methods.empty() ? methods : methods + "OPTIONS";
}

std::string_view served_path(const ServerOptions& options, std::string_view path) {
  const std::string& root = options.root_path;
  if (root.empty() || !methods_of(options, path).empty()) return path;
  if (path == root) return "/";
  return path.starts_with(root) && path[root.size()] == '/' ? path.substr(root.size()) : path;
}

}  // namespace valora::server
