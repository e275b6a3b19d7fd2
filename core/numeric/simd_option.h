// --isa: the same option wherever a command's numbers may depend on the width of vectors.
#pragma once

namespace CLI {
class App;
}

namespace assay {

// "--isa AVX2": no better instruction set than this, of simd_targets(). Holds from the moment it is read.
void add_isa_option(CLI::App& command);

}  // namespace assay
