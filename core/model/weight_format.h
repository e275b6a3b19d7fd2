// How many bytes a weight takes in the forms releases come in, scales included: what a plan of memory asks of a
// stored format (core/model/formats) before there is a checkpoint.
//
//   WeightFormat fp8 = *weight_format("fp8-block");       8 bits a code, 4 bytes for each block of 128 × 128
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/gguf_mix.h"
#include "core/model/module_patterns.h"

namespace assay {

class ModelConfig;
struct MixedFormat;

struct WeightFormat {
  enum class Kind {
    plain,   // plain_bytes an element
    blocks,  // codes, and a scale for each block of rows × columns; rows 0: the whole column, likewise
             // columns
    gguf,    // a mix of block types, by llama.cpp's rules (core/model/gguf_mix)
  };
  std::string name, title;
  Kind kind = Kind::plain;
  std::uint64_t bits = 16;  // of one code
  std::uint64_t block_rows = 0, block_columns = 0;
  std::uint64_t scale_bytes = 0;       // of one block's scale
  std::uint64_t per_matrix_bytes = 0;  // global scales, stored shapes
  std::uint64_t zero_bits = 0;         // of one block's zero point, packed along the rows
  std::uint64_t input_bytes = 0;       // for each column of a matrix: the group it belongs to (GPTQ)
  std::uint64_t word_bytes = 1;        // codes of a row fill whole words of so many bytes
  bool on_end = false;                 // codes and blocks run on from row to row (bitsandbytes)
  std::uint64_t scales_a_scale =
      0;                            // scales are codes in turn, of which so many share a scale in F32; 0: not
  std::uint64_t plain_bytes = 2;    // an element of what is not quantized
  std::string plain_type = "BF16";  // … and its type
  bool routed_experts_only = false;
  // MLX quantizes every module that can be, whose rows are whole blocks: tables of tokens and heads as well, and
  // routers where they are modules; not towers.
  enum class EveryModule { no, without_routers, with_routers };
  EveryModule every_module = EveryModule::no;
  // Beside what releases usually quantize (TensorSpec::quantizable): every Linear of towers and projectors, where nothing
  // names those left out; the output head.
  bool towers = false, head = false;
  // Engines multiply it with Marlin's kernels, which take inputs by 128 and outputs by 64 (marlin_utils.py).
  bool marlin = false;
  std::string codes_title = {};                        // "FP8", where its blocks may have any size
  std::shared_ptr<const ModulePatterns> ignored = {};  // modules_to_not_convert; nullptr: none
  std::shared_ptr<const ModulePatterns> only = {};     // these alone; nullptr: all
  GgufFileType file_type = GgufFileType::F16;          // gguf
  // Modules in forms of their own (ModelOpt's MIXED_PRECISION, compressed-tensors with several groups); what none of
  // them names is not quantized, and the fields above are those of the first. nullptr: one form for all.
  std::shared_ptr<const std::vector<MixedFormat>> mixed = {};
  std::string method = {};     // quant_method, where a config said it
  std::string not_known = {};  // the quantization method whose bytes nobody told; the fields are of the dtype
  bool mixed_beside = false;   // ... but what none of them names is in the form above (MLX)

  static WeightFormat plain(std::string name, std::string title, std::uint64_t bytes);
  static WeightFormat in_blocks(std::string name, std::string title, std::uint64_t bits, std::uint64_t rows,
                                std::uint64_t columns, std::uint64_t scale_bytes);
  // Blocks of another size ("64x64"), where they may have any; else nothing changes.
  void set_block(std::uint64_t rows, std::uint64_t columns);
};

struct MixedFormat {
  ModulePatterns modules;
  WeightFormat format;
};

// "bf16", "fp8-block", "fp8-channel", "int8-channel", "int4-g128", "nvfp4", "mxfp4", "q8_0", "q6_k",
// "q5_k_m", "q4_k_m": those that every format offers under a name.
std::vector<WeightFormat> weight_formats();
std::optional<WeightFormat> weight_format(std::string_view name);  // f32 and f16, too
// What config.json says the checkpoint holds: its dtype, or its quantization_config.
WeightFormat configured_format(const ModelConfig& config);

}  // namespace assay
