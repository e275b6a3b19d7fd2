// What is wrong with a checkpoint of which nothing but its headers tells what it should hold. Two things can be held
// against them: what the config says of their number (layers, experts), where a contradiction is an error; and a layer
// against its siblings. Layers may differ in kind by design (hybrids, dense ones before mixtures, windows with other
// heads), and then differ in much; one that lacks a single tensor, or has a single one in another shape, is named in a
// warning, for that is how files lose something.
#pragma once

#include "core/model/config.h"
#include "core/model/module_tree.h"
#include "core/system/finding.h"

namespace assay {

// `tree`: derive_tree() of a checkpoint with all its files.
Findings derived_faults(const ModuleTree& tree, const ModelConfig& config);

}  // namespace assay
