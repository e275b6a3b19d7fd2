#include "refimpl/run_cache.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/not_empty.h"
#include "core/system/text.h"
#include "refimpl/step/row_parts.h"

namespace assay {

void add_cache_options(CLI::App& command, RunSettings& settings) {
  command
      .add_option("--kv-cache", settings.kv_cache,
                  "Keep caches smaller: fp8, int8, kivi4, kivi2, streaming, h2o, snapkv, pyramidkv, grouped, "
                  "with options "
                  "(h2o:budget=64); docs/caches.md")
      ->type_name("METHOD")
      ->check(not_empty());
}

void check_cache_options(const RunSettings& settings) {
  if (settings.kv_cache.empty()) return;
  if (settings.speculation.wanted() || settings.interactive || settings.claims ||
      !settings.cache_dir.empty() || !settings.perplexity.empty() || !settings.logits.empty() ||
      settings.tokens_to_make() == 0)
    throw Error::usage("--kv-cache goes with texts that are made")
        .remedy(
            "leave out --speculate, --interactive, --claims, --cache-dir, --perplexity, --logits, -n 0; "
            "`assay compare caches` measures losses");
}

RunCache::RunCache(const OpenModel& model, const RunSettings& settings)
    : method_(cache_method(settings.kv_cache)),
      layers_(require_suitable(*method_, *model.model)),
      widths_(model.model->cache_widths()) {
  if (method_->groups().as_ever()) return;
  // Grouped are only layers that were alike: each had what the first of them has now, of every token.
  std::size_t layers = 0, width = 0;
  for (const AttentionGeometry& geometry : model.weights.tree().attention) layers += geometry.layers.size();
  for (const CacheWidth& each : widths_)
    if (!each.drafts) width = std::max(width, each.key_width + each.value_width);
  ungrouped_ = static_cast<double>(layers * width) * kFullBytes;
}

void RunCache::keep(TextEngine& engine) {
  engine.keep_by(method_);
  engine.watch_caches([this](std::size_t text, const SequenceCache& cache) {
    texts_[text] = {cache.length(), cache_bytes(cache, widths_)};
    if (ungrouped_ != 0) texts_[text].bytes.full = ungrouped_ * static_cast<double>(cache.length());
  });
}

std::string RunCache::line() const {
  double held = 0, full = 0, tokens = 0;
  for (const auto& [number, text] : texts_) {
    held += text.bytes.held;
    full += text.bytes.full;
    tokens += static_cast<double>(text.tokens);
  }
  return fmt::format("cache {}: {:.1f} bytes a token, {:.1f} in full; {} of {} layers",
                     escape_for_terminal(method_->name()), held / tokens, full / tokens, layers_.cut,
                     layers_.layers);
}

Json RunCache::to_json() const {
  Json texts = Json::array();
  for (const auto& [number, text] : texts_)
    texts.push_back({{"tokens", text.tokens},
                     {"bytes", text.bytes.held},
                     {"bytes_in_full", text.bytes.full},
                     {"rows", text.bytes.rows}});
  return {
      {"method", method_->name()}, {"layers_cut", layers_.cut}, {"layers", layers_.layers}, {"texts", texts}};
}

}  // namespace assay
