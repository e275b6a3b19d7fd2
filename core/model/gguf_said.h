// What a GGUF says of its model: keys below its architecture, tensors and their shapes, and the values of the small
// tables among them. What config.json is made of again (GgufOwnKey::back, GgufRules::back).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/formats/gguf.h"
#include "core/model/config.h"

namespace assay {

class GgufSaid {
 public:
  // All outlive this. `source`: of the header; it is opened for tables alone.
  GgufSaid(const gguf::Header& header, const std::filesystem::path& source,
           std::span<const CheckpointTensor> stored);

  const gguf::Header& header() const { return header_; }
  const std::filesystem::path& source() const { return source_; }
  const std::string& architecture() const { return architecture_; }

  // "attention.head_count": a single value, or a list of one that all layers share; nullopt where there is neither.
  std::optional<double> number(std::string_view key) const;
  std::uint64_t count(std::string_view key, std::uint64_t otherwise = 0) const;
  bool has(std::string_view key) const { return value(key) != nullptr; }
  // One for each layer, of a single value as many; empty where there is none.
  std::vector<double> list(std::string_view key) const;
  // As config.json would have it: whole numbers whole, float32 in its shortest form; null where there is none.
  ParsedJson json(std::string_view key) const;
  std::uint64_t layers() const;  // Error::input for more than any model has

  bool has_tensor(std::string_view name) const { return tensors_.contains(name); }
  bool any_tensor(std::string_view ending) const;  // "attn_q.bias", of whichever layer
  // Outermost first; empty where there is no such tensor.
  std::vector<std::uint64_t> shape(std::string_view name) const;
  // Of a short list in float32 ("rope_freqs.weight"); empty where there is none.
  std::vector<float> values(std::string_view name) const;

 private:
  const gguf::Value* value(std::string_view key) const;

  const gguf::Header& header_;
  const std::filesystem::path& source_;
  std::string architecture_;
  std::map<std::string, CheckpointTensor, std::less<>> tensors_;
};

// A real number that was a float32, as the shortest decimal that means it: 1e-06, and not 9.999999974752427e-07.
ParsedJson shortest_decimal(double value);

}  // namespace assay
