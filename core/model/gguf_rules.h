// What llama.cpp's converter does of its own for an architecture, beside the flags of GgufFamily: keys, names, and how
// values are put together. A constant each, in core/model/families/gguf_*.cpp; ways that several share are functions of
// gguf_transforms.h and gguf_own_keys.h. Source: llama.cpp's conversion/*.py.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/model/derived_tensor.h"
#include "core/model/gguf_family.h"
#include "core/model/module_tree.h"

namespace assay {

// What a key of an architecture is made of: config.json with text_config within it, and what stands there of
// rotary frequencies, as llama.cpp's converter reads them.
struct GgufFacts {
  const ModelConfig& config;
  const ModuleTree& tree;
  const ParsedJson& values;
  const ParsedJson& rope;  // of the layers that see everything, where kinds of layers differ

  // "ffn_config.hidden|hidden": the first that is there; nullptr where none is, or it is null.
  const ParsedJson* find(std::string_view names) const;
  double number(std::string_view names, double otherwise) const;
  double number(std::string_view names) const;  // Error::input where there is none
  std::uint64_t head_dim() const;               // head_dim, or hidden_size / num_attention_heads
  double rope_number(const char* key, double otherwise) const;  // of `rope`
};

class GgufSaid;  // core/model/gguf_said.h

// A key that an architecture has beside those of every one, and where its value is from: config.json under
// one of these names (not written where it is silent), a function (not written where it gives null), or a
// constant.
struct GgufOwnKey {
  enum class Form : std::uint8_t { u32, f32, flag, text, flags, i32s, f32s, file_type };
  std::string_view key;
  Form form = Form::u32;
  std::string_view config = {};
  ParsedJson (*made)(const GgufFacts& facts) = nullptr;
  std::optional<double> constant = {};
  bool unless_zero = false;
  bool of_tower = false;  // of a part of the model that is another file: config.json need not say it
  // The way back: what config.json says of it. nullptr: `config` is its name there, or that of the table (gguf_keys.h).
  void (*back)(const GgufSaid& said, ParsedJson& config) = nullptr;
};

// A tensor of the checkpoint that becomes one of another name than its role tells, or other values.
struct GgufSource {
  const ModuleTree& tree;
  const TensorSpec& spec;
  const StoredTensors& stored;
  std::uint32_t place;       // in `stored`
  std::string layer;         // "blk.7.", or "" outside of layers
  std::string_view stem;     // GgufOwnName::name
  const ParsedJson& values;  // config.json with text_config within it
};
struct GgufOwnName {
  std::string_view of;  // how the template of its name ends: "linear_attn.A_log"
  // "ssm_dt", "ssm_dt.bias", "ssm_a!" for one without a kind behind it; "attn_q|attn_k": several; "": left out.
  std::string_view name;
  // Several tensors, or one of other rows; nullptr: it stays what it is. What cannot be undone by name alone.
  std::vector<DerivedTensor> (*make)(const GgufSource& source) = nullptr;
};

// A key that is no tensor there though it is one of every layer in a checkpoint: their values in the order of layers.
struct GgufTensorKey {
  std::string_view of;   // how the template of its name ends
  std::string_view key;  // whole, without the architecture
};

struct GgufRules {
  GgufFamily base;
  // Of a family that has several architectures: whether this is the one of such a tree. nullptr: by base.told_by.
  bool (*is_of)(const ModuleTree& tree) = nullptr;
  // Whose keys they are: those of the table (gguf_keys.cpp) with the flags above; those that llama.cpp's
  // converter writes of any config.json, then `keys`; or `keys` alone.
  enum class Keys : std::uint8_t { table, of_config, own } keys_of = Keys::table;
  std::span<const GgufOwnKey> keys = {};
  std::span<const GgufOwnKey> early_keys = {};      // right behind general.architecture
  std::span<const GgufTensorKey> tensor_keys = {};  // right behind general.architecture, too
  std::span<const GgufOwnName> names = {};
  std::vector<DerivedTensor> (*more_tensors)(const GgufFacts& facts) =
      nullptr;                                  // of no tensor; they come first
  std::string_view activations = "silu|swish";  // that llama.cpp computes; "": those of a key, or not asked
  std::string_view rope_types = {};             // beside default, linear, yarn and llama3
  std::string_view norms_less_one = {};         // norms of this ending are stored less 1: "norm.weight"
  std::string_view norms_as_they_are = {};      // ... but those of this ending
  bool ignores_head_dim = false;
  // Of names of tensors that are float32 whatever the file's type: ".indexer.|hc_".
  std::string_view f32_parts = {};
  std::string_view f32_head = {};  // a flag of config.json: so is the head
  bool omits_lone_group = false;   // of experts: no key says that there is one group
  bool router_as_others = false;   // routers are of the file's type
  bool gate_last = false;          // of a layer's stacks the first by name (down) comes last
  // A file whose experts are the FP4 of the source: they lie where they would otherwise, or first; and what is not FP4
  // is of the file's type, or as it is stored, FP8 in Q8_0.
  enum class Fp4 : std::uint8_t { in_place, first, first_and_others_as_stored } fp4 = Fp4::in_place;
  // What the tokenizer's keys have beside those of base.vocabulary (gguf_family_tokens.cpp).
  enum class Tokenizer : std::uint8_t {
    plain,
    chatglm,       // tokens by their texts: of ChatGLM and GLM-4 of transformers,
    glm4,          // of dense GLM-4,
    glm,           // of GLM-4.5 and later,
    solar_open,    // of Solar Open,
    dots3,         // of dots3-note
    gemma,         // no space is put before a text
    code_gemma,    // ... and CodeGemma's tokens for filling in
    gemma4,        // pieces with merges, a model of its own
    ernie,         // add_prefix_space as tokenizer_config.json says, behind all else
    internlm2,     // as SentencePiece's model says, and a turn ends by <|im_end|>
    internlm3,     // add_prefix_space as tokenizer_config.json says, and <|im_end|>
    jamba,         // pieces also out of tokenizer.json, and then no space
    phi3,          // added tokens as tokenizer.json names them; or byte-level, by its class
    plamo,         // tokenizer.jsonl
    nemotron,      // padding 0 and unknown 1
    hunyuan,       // eod_token_id, and the turn's end of generation_config.json
    hunyuan_moe,   // the converter's bos
    muse_glimmer,  // <|eot|>
    laguna,        // </assistant>, and chat_template.jinja before tokenizer_config.json's
    minimax_01,    // the latter alone
    kimi_k3,       // eos as config.json has it
  } tokenizer = Tokenizer::plain;

  // The way back (gguf_mirror.h), of families that none of the tables above tells of: why there is none; "": there is
  // one. What no key tells, and which of several families with an architecture it is; nullptr: as base.told_by says.
  std::string_view lost = {};
  void (*back)(const GgufSaid& said, ParsedJson& config) = nullptr;
  bool (*told)(const GgufSaid& said) = nullptr;

  bool is_less_one(std::string_view tensor) const {
    return !norms_less_one.empty() && tensor.ends_with(norms_less_one) &&
           (norms_as_they_are.empty() || !tensor.ends_with(norms_as_they_are));
  }
};

// Of a family that has none: nothing of its own.
const GgufRules& gguf_rules(const GgufFamily& family);

bool is_written_as_gguf(std::string_view architecture);
// Whether a GGUF of it becomes transformers' checkpoint again.
bool can_be_read_back(const GgufFamily& family);
// ... by the tables that wrote it (gguf_mirror.h), and not by gguf_keys.h's names and gguf_names.h's alone.
bool is_mirrored(const GgufFamily& family);
// Whether its module tree is described by the names of gguf_keys.h, and needs no config.json.
bool is_told_by_keys(const GgufFamily& family);
// ... or any of an architecture.
bool is_told_by_keys(std::string_view architecture);

// As gguf_family(), and where one family has two architectures, that of mixtures or the other.
const GgufFamily* gguf_family_of(const ModuleTree& tree);

}  // namespace assay
