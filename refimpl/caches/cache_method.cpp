#include "refimpl/caches/cache_method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/system/error.h"
#include "refimpl/caches/methods.h"

namespace assay {
namespace {

constexpr std::array<CacheMethodName, 9> kNames = {{
    {"fp8", "codes of 8 bits (E4M3), one scale a tensor or a head", "fp8:recent=all"},
    {"int8", "codes of 8 bits, one scale a token and head", "int8:recent=all"},
    {"kivi4", "4 bits, keys by channel, values by token, the newest in full", "kivi4:residual=all"},
    {"kivi2", "2 bits, keys by channel, values by token, the newest in full", "kivi2:residual=all"},
    {"streaming", "the first tokens and the newest, renumbered", "streaming:window=all"},
    {"h2o", "the tokens that got most attention, and the newest", "h2o:budget=all"},
    {"snapkv", "the tokens that the end of the prompt attends to", "snapkv:budget=all"},
    {"pyramidkv", "likewise, fewer the deeper the layer", "pyramidkv:budget=all"},
    {"grouped", "the model's layers look back a window, but for every sixth; or share keys and values",
     "grouped:window=all"},
}};

MadeCacheMethod made_of(MethodText& text) {
  if (text.name() == "fp8") return make_fp8_cache(text);
  if (text.name() == "int8") return make_int8_cache(text);
  if (text.name() == "kivi4") return make_kivi_cache(text, 4);
  if (text.name() == "kivi2") return make_kivi_cache(text, 2);
  if (text.name() == "streaming") return make_streaming_cache(text);
  if (text.name() == "h2o") return make_heavy_hitter_cache(text);
  if (text.name() == "snapkv") return make_snap_cache(text, false);
  if (text.name() == "pyramidkv") return make_snap_cache(text, true);
  if (text.name() == "grouped") return make_grouped_layers(text);
  std::vector<std::string_view> names;
  for (const CacheMethodName& each : kNames) names.push_back(each.name);
  throw Error::usage(fmt::format("no cache \"{}\": there are {}", text.name(), fmt::join(names, ", ")));
}

}  // namespace

std::shared_ptr<const CacheMethod> cache_method(std::string_view text) {
  MethodText parts(text);
  const MadeCacheMethod method = made_of(parts);
  parts.require_all_used();
  return method;
}

std::span<const CacheMethodName> cache_method_names() {
  return kNames;
}

CutLayers require_suitable(const CacheMethod& method, const LanguageModel& model) {
  CutLayers layers;
  bool latent = false, throws_away = false;
  const bool grouped = !method.groups().as_ever();  // of a model that was made so
  for (const CacheWidth& width : model.cache_widths()) {
    if (width.key_width == 0 || width.drafts) continue;
    const std::unique_ptr<LayerPolicy> policy = method.layer({width, 0, 1}, 0);
    ++layers.layers;
    layers.cut += policy || (grouped && width.window != 0) ? 1 : 0;
    latent = latent || width.latent != 0;
    throws_away = throws_away || (policy && !policy->kept().empty());
  }
  if (grouped) return layers;
  const auto refuse = [&](const char* why) {
    return Error::input(fmt::format("{} makes no sense for this model: {}", method.name(), why));
  };
  if (layers.layers == 0) throw refuse("no layer keeps rows of tokens, all keep states");
  if (layers.cut == 0 && latent)
    throw refuse("its layers keep one latent a token").remedy("fp8 and int8 take latents");
  if (layers.cut == 0) throw refuse("its layers keep what they see of a window, or by an index of their own");
  if (method.renumbers() && model.embeds_positions())
    throw refuse("learnt positions are part of the tokens, and cannot be renumbered");
  if (method.renumbers() && layers.cut != layers.layers)
    throw refuse("rows of some of its layers cannot be renumbered");
  if (throws_away && !model.cache_serves(1, model.context()))
    throw refuse("its rotary frequencies follow the length of the text, which is then read anew");
  return layers;
}

void require_servable(const CacheMethod& method) {
  if (rounds_single_rows(method) || !method.groups().as_ever()) return;
  throw Error::input(fmt::format("{}: texts that are served share blocks, and what it keeps of one is not "
                                 "what it keeps of another",
                                 method.name()))
      .remedy("int8 and grouped can be served; the others go with `assay run --kv-cache`");
}

}  // namespace assay
