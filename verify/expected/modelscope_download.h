// A folder that ModelScope's client downloaded:
//
//   .msc    pickle: [{'Path': 'model.safetensors', 'Revision': 'f01d…'}, …], what was downloaded
//   .mdl    pickle: {'id': 'ORG/NAME'}
//   .mv     Revision:master,CreatedAt:1700000000
//
// No digest is among it: which files are missing can be said, and nothing of their bytes.
#pragma once

#include "verify/expected/expected.h"

namespace assay {

bool is_modelscope_download(const fs::path& folder);

Expectation expect_from_modelscope(const fs::path& folder);

}  // namespace assay
