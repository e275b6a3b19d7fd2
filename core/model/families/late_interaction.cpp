// ColBERT (arXiv 2004.12832) as its authors release it: a BERT, and a matrix that makes a narrow vector of each token. How wide
// these are its config does not say, but ColBERT's own settings, which have 128 where nobody says otherwise
// (colbert/infra/config/settings.py); vLLM 0.33's colbert.py reads the keys asked for here.
#include <nlohmann/json.hpp>

#include "core/model/families/all_encoders.h"
#include "core/model/families/encoder_kin.h"

namespace assay::families {
namespace {

using namespace blocks;

constexpr std::uint64_t kColbertWidth = 128;

// Jina's ColBERTs have the same class name over encoders of their own.
void require_bert(const ConfigReader& config) {
  config.require(config.config().model_type() == "bert",
                 "HF_ColBERT over another encoder than BERT is not described");
  config.require(!config.config().document().contains("auto_map"),
                 "auto_map names code of its own: HF_ColBERT is described over transformers' BERT");
}

void describe_colbert(ConfigReader& config, ModuleTree& tree) {
  require_bert(config);
  const EncoderKin kin{.prefix = "bert."};
  const Decoder d = read_encoder(config, tree, kin);
  add_encoder_tables(config, tree, d, kin, kin.prefix);
  tree.modules.push_back(encoder_layer(d, kin, kin.prefix));
  Module head = head_module("pooler, and vectors of tokens");
  add_linear(head, head_matrix(kin.prefix + "pooler.dense", d.hidden, d.hidden));
  blocks::Linear vectors =
      head_matrix("linear", d.hidden, config.size("colbert_dim|dim|projection_dim", kColbertWidth));
  vectors.bias = false;
  add_linear(head, vectors);
  tree.modules.push_back(std::move(head));
}

constexpr std::string_view kColbertArchitectures[] = {"HF_ColBERT"}, kColbertTypes[] = {"bert"};

}  // namespace

const Family kColbert = {"colbert", "ColBERT", kColbertArchitectures, kColbertTypes, {}, describe_colbert};

}  // namespace assay::families
