#include "cli/named_folders.h"

#include <fmt/format.h>

#include "base/files/file.h"
#include "base/log/log.h"
#include "base/text/human_bytes.h"
#include "cli/progress/progress_bar.h"
#include "hub/names/hub_name.h"

namespace valora::cli {
namespace {

std::string needs(const hub::DownloadPlan& plan) {
  std::string text = fmt::format("{} ({}): {} files, {}", plan.name, plan.commit.substr(0, 12),
                                 plan.files, human_bytes(plan.bytes));
  if (plan.missing < plan.bytes)
    text += fmt::format(", {} of them here", human_bytes(plan.bytes - plan.missing));
  return text + fmt::format(
                    "; {} of weights, which memory must hold. Loading {} into {}, which "
                    "has {} free",
                    human_bytes(plan.weights), human_bytes(plan.missing), plan.cache,
                    human_bytes(plan.free));
}

// Shows one download.
class ShownDownload {
 public:
  hub::HubEvents events() {
    return {.plan = [](const hub::DownloadPlan& plan) { spdlog::info("{}", needs(plan)); },
            .progress =
                [this](const hub::DownloadProgress& progress) {
                  bar_.show(static_cast<int64_t>(progress.done),
                            static_cast<int64_t>(progress.total), progress.note);
                },
            .loaded =
                [this](const hub::DownloadPlan& plan) {
                  bar_.clear();
                  spdlog::info("{} is loaded", plan.name);
                }};
  }

 private:
  ProgressBar bar_{stderr, real_clock(), ProgressBar::Unit::kBytes};
};

}  // namespace

Result<const hub::HubSettings*> NamedFolders::settings() {
  if (!settings_) {
    VALORA_TRY(read, hub::settings_of(hub::variable_of_process));
    if (!flags_.download_dir.empty()) read.cache = flags_.download_dir;
    if (!flags_.token.empty()) {
      VALORA_TRY(token, hub::clean_token(flags_.token, "--hf-token"));
      read.token = std::move(token);
      read.token_source = "--hf-token";
    }
    if (flags_.no_download) read.no_download = "--no-download";
    settings_ = std::move(read);
  }
  return &*settings_;
}

Result<hub::Resolved> NamedFolders::resolve(const std::string& text, hub::Kind kind) {
  // Most are paths, for which no setting must be right.
  if (file_exists(text) || !hub::parse_hub_name(text)) return hub::Resolved{text, ""};
  VALORA_TRY(found, settings());
  ShownDownload shown;
  return hub::resolve(text, kind, *found, shown.events());
}

// A path stays as it is.
Result<std::string> NamedFolders::with_revision(const std::string& text) const {
  if (flags_.revision.empty()) return text;
  auto name = hub::parse_hub_name(text);
  if (file_exists(text) || !name) {
    spdlog::info("--revision has no effect: {} is a path", text);
    return text;
  }
  if (!hub::is_revision(flags_.revision))
    return invalid("--revision takes a branch, tag or commit, not " + flags_.revision);
  if (!name->revision.empty() && name->revision != flags_.revision)
    return invalid(fmt::format("{} and --revision {} name two revisions; give one of them", text,
                               flags_.revision));
  name->revision = flags_.revision;
  return name->text();
}

Result<hub::Resolved> NamedFolders::model(const std::string& text) {
  VALORA_TRY(named, with_revision(text));
  return resolve(named, hub::Kind::kModel);
}

Result<std::string> NamedFolders::adapter(const std::string& text) {
  VALORA_TRY(resolved, resolve(text, hub::Kind::kAdapter));
  return std::move(resolved.path);
}

Result<std::string> NamedFolders::either(const std::string& text) {
  VALORA_TRY(named, with_revision(text));
  VALORA_TRY(resolved, resolve(named, hub::Kind::kAny));
  return std::move(resolved.path);
}

Status NamedFolders::set_model(EngineOptions& options) {
  VALORA_TRY(resolved, model(options.model_path));
  options.model_path = std::move(resolved.path);
  if (options.served_name.empty()) options.served_name = std::move(resolved.id);
  return {};
}

}  // namespace valora::cli
