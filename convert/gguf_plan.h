// Plans of the conversions that read or write GGUF:
//
//   safetensors -> GGUF    what convert_hf_to_gguf.py makes, and llama-quantize of it
//   GGUF -> GGUF           what llama-quantize makes
//   GGUF -> safetensors    transformers' names, config.json and tokenizer, as far as the metadata says them
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "convert/plan.h"
#include "core/model/gguf_mix.h"

namespace assay {

struct GgufOptions {
  std::string tokenizer_pre;
  std::vector<std::string> tensor_types;  // REGEX=TYPE
  std::string tensor_types_file;          // the same, in a file
  std::string imatrix;                    // an importance matrix's file; empty: none
  bool allow_requantize = false;          // a GGUF that is quantized already may be quantized again
  bool drop_unknown = false;              // what the architecture has no place for may be left out
};

// "gguf:q4_k_m"; nullopt: of another kind. Throws Error::usage for a GGUF type that is not offered.
std::optional<GgufFileType> gguf_spec(std::string_view to);

// "q4_k_m" of "Q4_K_M".
std::string lower_case(std::string_view text);

// Whether the plan is to be made here: a GGUF on either side.
bool concerns_gguf(const fs::path& in, std::string_view to);

// Throws Error::refused, ::input or ::usage; what it returns can be written.
ConversionPlan make_gguf_plan(const fs::path& in, const fs::path& out, const ConvertOptions& options,
                              const GgufOptions& gguf);

}  // namespace assay
