// EnCodec (arXiv:2210.13438): SEANet's convolutions with an LSTM at either side of what is quantized, by books of codes each of which
// takes what the one before has left. Names and sizes: transformers 5.23, modeling_encodec.py.
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/model/families/all_speakers.h"
#include "core/model/families/codec_seanet.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

// As many books as the largest bandwidth (in thousands of bits a second) pays for.
Quantity encodec_books(ConfigReader& config, const Seanet& of, const Quantity& codes) {
  double hop = 1;
  for (const std::uint64_t ratio : of.ratios) hop *= static_cast<double>(ratio);
  const double sampling = static_cast<double>(config.size("sampling_rate", 24000).value());
  const double bits = std::ceil(std::log2(static_cast<double>(codes.value())));
  config.require(bits >= 1, "codebook_size is 1: nothing is told by such a code");
  double bandwidth = 24;
  const std::string key = "target_bandwidths";
  if (config.has(key)) {
    const auto& listed = config.config().text().at(key);
    config.require(listed.is_array() && !listed.empty(), "target_bandwidths is no list, or empty");
    bandwidth = config.to_real(listed.back(), key, 0, 1e6);
  }
  const double count = std::floor(1000 * bandwidth / (std::ceil(sampling / hop) * bits));
  config.require(count >= 1 && count <= kMostSeanetLayers,
                 "target_bandwidths pay for no book, or for too many");
  return {"books", static_cast<std::uint64_t>(count)};
}

// The vectors of a book are not trained by gradients; beside them checkpoints hold how they were found.
Module encodec_quantizer(ConfigReader& config, const Seanet& of) {
  const Quantity codes = config.size("codebook_size", 1024);
  const Quantity width = config.optional_size("codebook_dim").value_or(of.hidden);
  Module books =
      layers("quantizer.layers.{layer}", "books of codes", all_layers(encodec_books(config, of, codes)));
  Tower(books, Part::audio).tensor("codebook.embed", {codes, width});
  add_buffer(books, "codebook.embed_avg", {codes.value(), width.value()});
  add_buffer(books, "codebook.cluster_size", {codes.value()});
  add_buffer(books, "codebook.inited", {1});
  return books;
}

void describe_encodec(ConfigReader& config, ModuleTree& tree) {
  Seanet of = read_seanet(
      config, {.hidden = 128, .filters = 32, .last_reach = 7, .ratios = {8, 5, 4, 2}, .shortcut = true});
  const std::string norm = config.text("norm_type", "weight_norm");
  config.require(norm == "weight_norm" || norm == "time_group_norm",
                 "norm_type is neither weight_norm nor time_group_norm");
  of.norm = norm == "weight_norm" ? SeanetNorm::weight : SeanetNorm::group;
  of.recurrent = config.number("num_lstm_layers", 2);
  config.require(of.recurrent >= 1 && of.recurrent <= kMostSeanetLayers,
                 "num_lstm_layers is 0, or too large");
  tree.hidden_size = of.hidden.value();
  tree.modules = {seanet_encoder(config, of, "encoder"), encodec_quantizer(config, of),
                  seanet_decoder(config, of, "decoder")};
}

constexpr std::string_view kEncodecArchitectures[] = {"EncodecModel"}, kEncodecTypes[] = {"encodec"};

}  // namespace

const Family kEncodec = {
    "encodec", "EnCodec (a codec of sound)", kEncodecArchitectures, kEncodecTypes, {}, describe_encodec};

}  // namespace assay::families
