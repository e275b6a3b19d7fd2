// What `assay gate` measures beside kernels: whole models, the engine's claims, smaller caches, conversions. On models of the
// repository, from `data`, the folder above that of the baseline; a suite whose models are not there measures
// nothing, which the gate calls vanished where the baseline knows of it.
#pragma once

#include <filesystem>
#include <vector>

#include "kernels/gate/figures.h"

namespace assay {

std::vector<GateFigure> gate_models(const std::filesystem::path& data, int jobs);
std::vector<GateFigure> gate_claims(const std::filesystem::path& data, int jobs);
std::vector<GateFigure> gate_caches(const std::filesystem::path& data, int jobs);
std::vector<GateFigure> gate_conversions(const std::filesystem::path& data, int jobs);

// models, claims, caches, conversions
std::vector<GateSuite> gate_suites();

}  // namespace assay
