#include "tests/support/made_families.h"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/model/module_tree.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

// Numbers that follow from a tensor's name: make_gguf_families.py's words_of.
std::vector<std::uint64_t> words_of(const std::string& name, std::uint64_t count) {
  std::uint64_t seed = 0xCBF29CE484222325;
  for (const unsigned char byte : name) seed = (seed ^ byte) * 0x100000001B3;
  std::vector<std::uint64_t> words(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t x = seed + i * 0x9E3779B97F4A7C15;
    x ^= x >> 33;
    x *= 0xFF51AFD7ED558CCD;
    words[i] = x ^ x >> 33;
  }
  return words;
}

// Its weight_of: multiples of 1/256 between -1/2 and 1/2, in bfloat16 without loss.
std::string weight_of(const std::string& name, std::uint64_t count, std::size_t bytes_each = 2) {
  std::string bytes;
  for (const std::uint64_t x : words_of(name, count)) {
    const bool exponent =
        name.ends_with("A_log");  // of few values, of which torch's exp is the nearest float
    const float value =
        exponent ? (static_cast<float>(x >> 62) - 2) / 4 : (static_cast<float>(x >> 56) - 128) / 256;
    char stored[sizeof value];
    std::memcpy(stored, &value, sizeof value);
    bytes.append(stored + sizeof value - bytes_each, bytes_each);
  }
  return bytes;
}

// Its codes_of: of MXFP4 pairs of codes, and exponents from 118 to 125.
std::string codes_of(const std::string& name, std::uint64_t count) {
  const bool scale = name.ends_with("_scales") || name.ends_with("scale");
  std::string bytes;
  for (const std::uint64_t x : words_of(name, count))
    bytes += static_cast<char>(scale ? 118 + (x >> 61) : x >> 56);
  return bytes;
}

// Its floats_of: FP8 without NaN.
std::string floats_of(const std::string& name, std::uint64_t count) {
  std::string bytes;
  for (const std::uint64_t x : words_of(name, count))
    bytes += static_cast<char>((x >> 56 & 0x7F) == 0x7F ? x >> 56 ^ 1 : x >> 56);
  return bytes;
}

// Its table_of: experts that follow on each other.
std::string table_of(const std::string& name, std::uint64_t tokens, std::uint64_t chosen,
                     std::uint64_t experts) {
  std::string bytes;
  for (const std::uint64_t x : words_of(name, tokens)) {
    for (std::uint64_t j = 0; j < chosen; ++j) {
      const auto expert = static_cast<std::int64_t>(((x >> 33) + j) % experts);
      char stored[sizeof expert];
      std::memcpy(stored, &expert, sizeof expert);
      bytes.append(stored, sizeof expert);
    }
  }
  return bytes;
}

struct SavedTensor {
  std::string name, type;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};
using Shape = std::vector<std::uint64_t>;
std::uint64_t elements(const Shape& shape) {
  return element_count(shape).value();
}
SavedTensor codes(const std::string& name, const std::string& type, const Shape& shape) {
  return {name, type, shape, codes_of(name, elements(shape))};
}
bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// As a config of that kind has it stored.
enum class Stored : std::uint8_t { plain, gpt_oss, compressed_tensors, deepseek_v4 };
Stored stored_by(const std::string& config) {
  if (contains(config, "\"expert_dtype\"")) return Stored::deepseek_v4;
  if (contains(config, "\"mxfp4-pack-quantized\"")) return Stored::compressed_tensors;
  return contains(config, "\"mxfp4\"") ? Stored::gpt_oss : Stored::plain;
}

std::vector<SavedTensor> as_deepseek_v4(const std::string& name, const Shape& shape) {
  const std::string scale = name.substr(0, name.rfind('.') + 1) + "scale";
  if (contains(name, ".experts."))
    return {codes(name, "I8", {shape[0], shape[1] / 2}), codes(scale, "F8_E8M0", {shape[0], shape[1] / 32})};
  bool eight_bits = contains(name, "indexer.wq_b") || contains(name, "shared_experts");
  for (const char* part : {"wq_a", "wq_b", "wkv", "wo_a", "wo_b"})
    eight_bits = eight_bits || name.ends_with(std::string("attn.") + part + ".weight");
  if (eight_bits)
    return {{name, "F8_E4M3", shape, floats_of(name, elements(shape))},
            codes(scale, "F8_E8M0", {(shape[0] + 127) / 128, (shape[1] + 127) / 128})};
  bool whole = false;
  for (const char* part : {"hc_", "attn_sink", ".ape", "gate.bias"}) whole = whole || contains(name, part);
  if (whole) return {{name, "F32", shape, weight_of(name, elements(shape), 4)}};
  return {{name, "BF16", shape, weight_of(name, elements(shape))}};
}

std::vector<SavedTensor> saved_tensors(const std::string& name, const TensorSpec& spec, Stored stored,
                                       std::uint64_t experts) {
  const Shape& shape = spec.shape;
  if (name.ends_with("tid2eid")) return {{name, "I64", shape, table_of(name, shape[0], shape[1], experts)}};
  if (stored == Stored::deepseek_v4) return as_deepseek_v4(name, shape);
  if (stored == Stored::compressed_tensors && contains(name, ".experts."))
    return {codes(name + "_packed", "U8", {shape[0], shape[1] / 2}),
            codes(name + "_scale", "U8", {shape[0], shape[1] / 32})};
  if (stored == Stored::gpt_oss && spec.stacked != 0 && !spec.bias)
    return {codes(name + "_blocks", "U8", {shape[0], shape[2], shape[1] / 32, 16}),
            codes(name + "_scales", "U8", {shape[0], shape[2], shape[1] / 32})};
  return {{name, "BF16", shape, weight_of(name, elements(shape))}};
}

}  // namespace

void make_family_model(const std::string& name, const fs::path& folder, const std::string& changes) {
  std::string json = read_file(source_dir() / "data/fixtures/gguf_families" / (name + ".json"));
  if (!changes.empty()) {
    nlohmann::json config = nlohmann::json::parse(json);
    config.merge_patch(nlohmann::json::parse(changes));
    json = config.dump();
  }
  fs::create_directories(folder);
  write_file(folder / "config.json", json);
  const ModuleTree tree = describe(ModelConfig::read(folder / "config.json"));
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  const TensorLookup lookup(tree);
  for_each_tensor(tree, [&](const std::string& tensor, const TensorSpec& spec, const TensorIndices&) {
    const auto found = lookup.find(tensor);
    // Tables of tokens; keys and values of layers that read another's.
    const bool kept =
        tensor.ends_with("tid2eid") || contains(tensor, "self_attn.k_") || contains(tensor, "self_attn.v_");
    const bool stored = spec.storage == Storage::own || (spec.storage == Storage::buffer && kept);
    if (!stored || spec.part == Part::mtp || !found || found->mtp) return;
    for (const SavedTensor& one : saved_tensors(tensor, spec, stored_by(json), tree.experts)) {
      const std::size_t begin = data.size();
      data += one.bytes;
      header[one.name] = {{"dtype", one.type}, {"shape", one.shape}, {"data_offsets", {begin, data.size()}}};
    }
  });
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  write_file(folder / "model.safetensors",
             std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data);
}

}  // namespace assay::test
