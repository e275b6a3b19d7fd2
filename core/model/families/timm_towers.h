// ViTs as the library timm names their tensors, in checkpoints of models whose own code builds their eyes of it.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

struct TimmVit {
  Quantity width, depth, wide, patch, places;  // places: rows of the table of positions
  bool scaled_blocks = false;                  // ls1, ls2
  std::uint64_t registers = 0;                 // DINOv2's, beside a class token
  bool class_token = false;
  bool pooled = false;  // attn_pool: one query looks at all patches (SigLIP)
};
Module timm_vit(const TimmVit& vit, std::string path);

}  // namespace assay::families
