// What vision and audio towers are made of: encoder blocks and bare matrices, norms and tables, each a tensor of its
// tower and nothing more. Few releases quantize them (WeightFormat::towers).
#pragma once

#include <string>
#include <vector>

#include "core/model/blocks.h"

namespace assay::blocks {

// Fills a module with a tower's tensors.
class Tower {
 public:
  Tower(Module& module, Part part) : module_(module), part_(part) {}
  Tower& matrix(const std::string& name, const Quantity& in, const Quantity& out, bool bias);
  Tower& norm(const std::string& name, const Quantity& width, bool bias);
  Tower& tensor(const std::string& name, const std::vector<Quantity>& shape);  // the name written out

 private:
  Tower& add(std::string name, const std::vector<Quantity>& shape, bool bias);
  Module& module_;
  Part part_;
};

// A transformer encoder's block: norm, attention, norm, MLP.
struct EncoderBlock {
  Quantity hidden, intermediate;
  std::string norm1 = "norm1", norm2 = "norm2";
  bool norm_bias = true;
  std::string qkv = {};                          // one matrix; else q, k, v
  std::optional<Quantity> attention_width = {};  // heads × head_dim; absent: hidden
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj",
              o = "self_attn.out_proj";
  bool attention_bias = true;
  std::string gate = {}, up = "mlp.fc1", down = "mlp.fc2";  // gate "": an MLP of two matrices
  bool mlp_bias = true;
};
Module encoder_blocks(std::string path, const Quantity& depth, const EncoderBlock& block, Part part);

}  // namespace assay::blocks
