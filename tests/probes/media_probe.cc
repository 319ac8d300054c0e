// Runs media functions for the parity tests. One JSON command per line on stdin, one JSON answer
// per line on stdout. Pixels (raw bytes) and patches (raw floats) are written to files.
#include <fstream>
#include <iostream>

#include "base/files/file.h"
#include "media/fetch/loader.h"
#include "media/processors/anyres_grid.h"

namespace valora::media {
namespace {

constexpr size_t kMaxFile = size_t{1} << 30;

std::span<const uint8_t> as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename T>
Status write_raw(const std::string& path, const T& values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof *values.data()));
  if (!out.flush()) return internal(path + " cannot be written");
  return {};
}

Result<Image> read_image(const std::string& path) {
  VALORA_TRY(bytes, read_file(path, kMaxFile));
  return decode_image(as_bytes(bytes), Limits{});
}

template <typename T>
void read_into(const Json& json, const char* key, std::optional<T>& value) {
  if (json.contains(key)) value = json.at(key).get<T>();
}

// {"kind": "image" or "video", "rule": "span" or "uniform", the settings by their names}
ProcessorOverrides overrides_of(const Json& json) {
  ProcessorOverrides out{.kind = json.at("kind") == "image" ? MediaKind::kImage : MediaKind::kVideo,
                         .whole_sides = true};
  read_into(json, "min_pixels", out.min_pixels);
  read_into(json, "max_pixels", out.max_pixels);
  read_into(json, "total_pixels", out.total_pixels);
  read_into(json, "resized_height", out.resized_height);
  read_into(json, "resized_width", out.resized_width);
  const std::string rule = json.value("rule", "");
  if (rule == "uniform") {
    UniformSampling uniform;
    read_into(json, "num_frames", uniform.num_frames);
    read_into(json, "fps", uniform.fps);
    out.frames = uniform;
  } else if (rule == "span") {
    ProcessorOverrides::SpanChoice span;
    read_into(json, "nframes", span.nframes);
    read_into(json, "min_frames", span.min_frames);
    read_into(json, "max_frames", span.max_frames);
    read_into(json, "fps", span.fps);
    read_into(json, "video_start", span.start);
    read_into(json, "video_end", span.end);
    out.frames = span;
  }
  return out;
}

Result<std::shared_ptr<const Processor>> model_processor(const Json& command) {
  const Json config = command.value("config", Json::object());
  if (command.contains("clip")) {
    const Json& target = command.at("clip");
    return make_clip_processor(
        config, {target.at("image_size"), target.at("patch_size"), target.at("class_token")});
  }
  if (command.contains("tiles")) {
    const Json& target = command.at("tiles");
    return make_tile_processor({config, {}, command.value("both", Json())},
                               {target.at("patch_size"), target.at("merge_size")},
                               target.value("videos", false));
  }
  if (command.contains("canvas")) {
    const Json& target = command.at("canvas");
    return make_canvas_processor({config, command.value("video_config", Json()), {}},
                                 {target.at("patch_size"), target.at("merge_size")});
  }
  if (command.contains("anyres")) {
    const Json& target = command.at("anyres");
    VALORA_TRY(pinpoints, parse_pinpoints(target.at("pinpoints")));
    VALORA_TRY(made, make_anyres_processor({config, command.value("video_config", Json()),
                                            command.value("both", Json())},
                                           {target.at("image_size"), target.at("patch_size"),
                                            pinpoints, pinpoints, target.value("most_tiles", 0)}));
    return command.value("several", false) ? made->of_several() : made;
  }
  if (command.contains("pixtral")) {
    const Json& target = command.at("pixtral");
    return make_pixtral_processor(
        {config, {}, command.value("both", Json())},
        {target.at("patch_size"), target.at("merge_size"), target.at("most_patches")});
  }
  if (command.contains("gemma3")) {
    const Json& target = command.at("gemma3");
    return make_gemma3_processor(
        {config, {}, command.value("both", Json())},
        {target.at("image_size"), target.at("patch_size"), target.at("tokens")});
  }
  const PatchLayout tower{config.value("patch_size", 14), config.value("temporal_patch_size", 2),
                          config.value("merge_size", 2)};
  return make_qwen2_vl_processor(config, command.value("video_config", Json()), tower);
}

// Applies "overrides", if the command has any.
Result<std::shared_ptr<const Processor>> processor_of(const Json& command) {
  VALORA_TRY(processor, model_processor(command));
  if (!command.contains("overrides")) return processor;
  return processor->with(overrides_of(command.at("overrides")));
}

Result<Json> answer(const VisualInput& input, const std::string& out) {
  VALORA_CHECK(write_raw(out, input.patches));
  return Json{{"grid", {input.grid_t, input.grid_h, input.grid_w}},
              {"patch_dim", input.patch_dim},
              {"tiles", {input.tile_rows, input.tile_columns}},
              {"tokens", input.tokens},
              {"seconds_per_grid", input.seconds_per_grid}};
}

Result<Json> decode(const Json& command) {
  VALORA_TRY(image, read_image(command.at("path")));
  VALORA_CHECK(write_raw(command.at("out"), image.rgb));
  return Json{{"width", image.width}, {"height", image.height}};
}

// The filter by its name in PIL.
Resample filter_of(const Json& command) {
  const std::string name = command.value("filter", "BICUBIC");
  return name == "LANCZOS"    ? Resample::kLanczos
         : name == "BILINEAR" ? Resample::kBilinear
                              : Resample::kBicubic;
}

// Takes raw RGB, so that only the resize is compared.
Result<Json> resize(const Json& command) {
  VALORA_TRY(rgb, read_file(command.at("path"), kMaxFile));
  const Image image{command.at("width"), command.at("height"), {rgb.begin(), rgb.end()}};
  if (image.rgb.size() != size_t(image.width) * image.height * 3)
    return invalid("the raw image has another size");
  const Image resized =
      resize_image(image, command.at("to").at(0), command.at("to").at(1), filter_of(command));
  VALORA_CHECK(write_raw(command.at("out"), resized.rgb));
  return Json::object();
}

Result<Json> process_image(const Json& command) {
  VALORA_TRY(processor, processor_of(command));
  VALORA_TRY(image, read_image(command.at("path")));
  VALORA_TRY(input, processor->image(image));
  return answer(input, command.at("out"));
}

// Token counts for pictures of many sizes; null for each that is refused.
Result<Json> image_tokens(const Json& command) {
  VALORA_TRY(processor, processor_of(command));
  Json counts = Json::array();
  for (const Json& size : command.at("sizes")) {
    const auto tokens = processor->image_tokens(size.at(0), size.at(1));
    counts.push_back(tokens.ok() ? Json(*tokens) : Json());
  }
  return Json{{"tokens", counts}};
}

Result<Json> process_frames(const Json& command) {
  VALORA_TRY(processor, processor_of(command));
  std::vector<Image> frames;
  for (const Json& path : command.at("paths")) {
    VALORA_TRY(frame, read_image(path));
    frames.push_back(std::move(frame));
  }
  VALORA_TRY(input, processor->video(frames, command.value("fps", 0.0)));
  return answer(input, command.at("out"));
}

Result<Json> sample(const Json& command) {
  VALORA_TRY(processor, processor_of(command));
  VideoInfo info;
  info.frames = command.at("frames");
  info.fps = command.at("fps");
  info.width = command.value("width", 0);
  info.height = command.value("height", 0);
  VALORA_TRY(indices, processor->frame_sampler()(info));
  const auto kept = int64_t(indices.size());
  Json out{{"indices", indices}, {"rate", processor->sampled_fps(info, kept)}};
  if (info.width == 0) return out;
  VALORA_TRY(tokens, processor->video_tokens(info.width, info.height, kept));
  out["tokens"] = tokens;
  return out;
}

Result<Json> run(const Json& command) {
  const std::string name = command.at("op");
  if (name == "decode") return decode(command);
  if (name == "resize") return resize(command);
  if (name == "process_image") return process_image(command);
  if (name == "image_tokens") return image_tokens(command);
  if (name == "process_frames") return process_frames(command);
  if (name == "sample") return sample(command);
  return invalid("unknown command " + name);
}

}  // namespace
}  // namespace valora::media

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto result = valora::media::run(valora::Json::parse(line));
    const valora::Json answer = result.ok() ? result.value()
                                            : valora::Json{{"error", result.error().message},
                                                           {"param", result.error().param}};
    std::cout << answer.dump() << std::endl;
  }
}
