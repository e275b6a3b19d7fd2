// From pieces back to text: the "decoder" of tokenizer.json, as a chain that works token by token.
//
// Each step takes pieces and gives pieces as soon as they are final, so decoding a stream and decoding the
// whole are the same thing.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/json.h"

namespace assay {

class DecodeStep {
 public:
  virtual ~DecodeStep() = default;
  virtual void push(std::string piece, std::vector<std::string>& out) = 0;
  virtual void finish(std::vector<std::string>& out) { (void)out; }
};

// Makes the steps anew for every stream.
using DecodeStepMaker = std::function<std::unique_ptr<DecodeStep>()>;
using DecoderPlan = std::vector<DecodeStepMaker>;

// `config`: the JSON object; null: pieces are joined with spaces. Error::input for a type we do not know.
DecoderPlan read_decoder(const ParsedJson& config, const std::filesystem::path& source);

DecoderPlan byte_level_decoder();  // GPT-2's alphabet
DecoderPlan marked_decoder();      // "▁" is a space, but for the first; <0xNN> is a byte
DecoderPlan verbatim_decoder();    // pieces are the bytes themselves
DecoderPlan wordpiece_decoder(std::string_view prefix, bool cleanup);

// Steps in a row.
class DecodeChain {
 public:
  explicit DecodeChain(const DecoderPlan& plan);
  std::string push(std::string piece);
  std::string finish();

 private:
  std::string run(std::vector<std::string> pieces, std::size_t from);
  std::vector<std::unique_ptr<DecodeStep>> steps_;
};

}  // namespace assay
