// The vocabulary in a GGUF's metadata (tokenizer.ggml.*), tokenized as llama.cpp does.
#pragma once

#include <filesystem>
#include <memory>

#include "core/formats/gguf.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// Error::input where there is no vocabulary, or of a kind we do not know.
std::unique_ptr<Tokenizer> read_gguf_tokenizer(const gguf::Header& header,
                                               const std::filesystem::path& source);

}  // namespace assay
