// A vocabulary from a stranger, and a text with it. Byte 0 says what kind of file it is, byte 1 how long the
// text; the text follows, then the file.
// link: assay_tokenizers
#include <algorithm>

#include "refimpl/tokenizers/gguf_vocabulary.h"
#include "refimpl/tokenizers/hf_tokenizer.h"
#include "refimpl/tokenizers/sentencepiece.h"
#include "refimpl/tokenizers/tekken.h"
#include "refimpl/tokenizers/tiktoken.h"
#include "refimpl/tokenizers/token_stream.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/fuzz/fuzz.h"

using namespace assay;

namespace {

std::unique_ptr<Tokenizer> read(int kind, std::string_view file) {
  switch (kind) {
    case 0: return read_hf_tokenizer(file, {}, "fuzz.json");
    case 1: {
      SentencePieceOptions options;
      options.add_bos = options.add_eos = true;
      return make_sentencepiece(parse_sentencepiece_model(file, "fuzz.model"), options);
    }
    case 2:
      return read_gguf_tokenizer(gguf::parse_header(fuzz::as_bytes(file), file.size(), "fuzz.gguf"),
                                 "fuzz.gguf");
    case 3: return read_tiktoken(file, "cl100k_base", {}, "fuzz.tiktoken");
    case 5: return read_tekken(file, {}, "tekken.json");
    default: {
      const std::size_t half = file.find('\n');
      const std::string_view merges = half == std::string_view::npos ? "" : file.substr(half + 1);
      return read_vocab_and_merges(file.substr(0, half), merges, {}, "vocab.json");
    }
  }
}

void check(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options) {
  const auto ids = fuzz::accepted([&] { return tokenizer.encode(text, options); });
  if (!ids) return;
  const auto whole = fuzz::accepted([&] { return tokenizer.decode(*ids, true); });
  if (!whole) return;
  TokenStream stream(tokenizer);
  std::string streamed;
  for (const TokenId id : *ids) {
    const std::string part = stream.push(id);
    fuzz::require(unicode::valid_prefix(part) == part.size(), "a stream gives valid UTF-8");
    streamed += part;
  }
  streamed += stream.finish();
  fuzz::require(streamed == unicode::with_replacements(*whole),
                "a stream gives what decoding the whole gives");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string_view rest = fuzz::as_text(data, size).substr(2);
  const std::string_view text = rest.substr(0, std::min<std::size_t>(data[1], rest.size()));
  rest.remove_prefix(text.size());
  const auto tokenizer = fuzz::accepted([&] { return read(data[0] % 6, rest); });
  if (!tokenizer) return 0;
  check(**tokenizer, text, {true, true});
  check(**tokenizer, text, {false, false});
  return 0;
}
