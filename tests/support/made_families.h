// Small models of the families that are written as GGUF: configs of data/fixtures/gguf_families, weights by a rule that
// data/make_gguf_families.py knows too, so that no checkpoint need lie here.
#pragma once

#include <string>

#include "core/system/file.h"
#include "tests/support/paths.h"

namespace assay::test {

// The checkpoint that the module tree of NAME.json describes, in the form that its config says; `changes` are merged into
// the config (a JSON patch).
void make_family_model(const std::string& name, const fs::path& folder, const std::string& changes = "");

}  // namespace assay::test
