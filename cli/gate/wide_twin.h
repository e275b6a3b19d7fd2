// A model 256 wide, whose rows fill the blocks of GGUF's K-quants; those of data/tinylm do not, and every
// tensor of it becomes something else.
#pragma once

#include <filesystem>

namespace assay {

// Writes a Llama of two layers in BF16, its numbers from a seed, beside the tokenizer of `tokenizer_from`.
void write_wide_twin(const std::filesystem::path& folder, const std::filesystem::path& tokenizer_from);

}  // namespace assay
