// Finds the tokenizer of a model and reads it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/formats/checkpoint.h"
#include "core/formats/gguf.h"
#include "refimpl/tokenizers/tokenizer.h"

namespace assay {

// `path`: a model's folder (tokenizer.json, else tokenizer.model, else vocab.json and merges.txt, else a rank
// file, else the one GGUF in it), a hub cache's models--org--name, or one of those files. `pattern` is for
// rank files (see read_tiktoken). Throws Error::input where there is nothing to read.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path, std::string_view pattern = {});

// Of a GGUF that has been opened already.
std::unique_ptr<Tokenizer> load_tokenizer(const gguf::Header& header, const std::filesystem::path& path);

// That of a checkpoint: in it, or beside it. Throws Error::input also where it is another model's, who has a
// vocabulary of this size.
std::unique_ptr<Tokenizer> load_tokenizer(const Checkpoint& checkpoint, std::size_t vocabulary);
// … null in place of Error::input: for those who can do without.
std::unique_ptr<Tokenizer> find_tokenizer(const Checkpoint& checkpoint, std::size_t vocabulary);

}  // namespace assay
