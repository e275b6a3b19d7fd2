// What is done to a text before it is cut: the "normalizer" of tokenizer.json.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/formats/json.h"

namespace assay {

class TextNormalizer {
 public:
  virtual ~TextNormalizer() = default;
  virtual std::string apply(std::string_view text) const = 0;
};

// `config`: the JSON object (null: nothing is done, nullptr). Error::input for a type we do not know.
std::unique_ptr<TextNormalizer> read_normalizer(const ParsedJson& config,
                                                const std::filesystem::path& source);

struct BertNormalizerOptions {
  bool clean_text = true, cjk = true, strip_accents = true, lowercase = true;
};
std::unique_ptr<TextNormalizer> make_bert_normalizer(BertNormalizerOptions options);
std::unique_ptr<TextNormalizer> make_nfc_normalizer();
// Each `from` becomes `to`.
std::unique_ptr<TextNormalizer> make_replacing_normalizer(std::string_view from, std::string_view to);

}  // namespace assay
