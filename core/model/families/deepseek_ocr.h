// DeepSeek-VL2, DeepSeek-OCR and its kin: what stands before their language models.
#pragma once

#include <string>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

void add_deepseek_vl2(ConfigReader& document, ModuleTree& tree);
void add_deepseek_ocr(ConfigReader& document, ModuleTree& tree);
void add_unlimited_ocr(ConfigReader& document, ModuleTree& tree);  // as transformers has it
void add_deepseek_ocr2(ConfigReader& document, ModuleTree& tree);
// sighted_sam.cpp: SAM's encoder under the names of its own code.
Module deep_sam_tower(ConfigReader& sam, std::string path);

}  // namespace assay::families
