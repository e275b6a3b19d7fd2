// The published hyperparameters of real models, in the tree (data/make_published_configs.py).
#pragma once

#include <filesystem>
#include <string_view>

namespace assay::test {

std::filesystem::path published_configs();                       // the folder of them
std::filesystem::path published_config(std::string_view model);  // "DeepSeek-V3"

}  // namespace assay::test
