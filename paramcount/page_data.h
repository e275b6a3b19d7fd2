// What the HTML page draws beyond the tables of assay.paramcount/1: storeys of the floor plan, memory against context,
// and the GPUs a model runs on.
#pragma once

#include <string>

#include "core/system/json.h"
#include "paramcount/paramcount.h"

namespace assay {

// "meta-llama/Llama-3.1-8B" of a hub cache, else the folder, or the file where that says more; never empty.
std::string model_name(const Model& model);

// {name, floor, curve, machines}: docs/paramcount.md, "The page".
Json page_data(const Model& model, const Question& question);

}  // namespace assay
