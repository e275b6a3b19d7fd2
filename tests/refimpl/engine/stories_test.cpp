// The published model of 260 thousand parameters, from its GGUF: the 200 greedy steps of llama2.c's test.
#include <gtest/gtest.h>

#include <string>

#include "core/formats/gguf.h"
#include "refimpl/engine/engine.h"
#include "refimpl/ops/reference.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// SentencePiece's way back, for a vocabulary of ordinary pieces and bytes "<0x0A>".
std::string text_of(const std::vector<TokenId>& ids, const std::vector<std::string>& pieces) {
  std::string text;
  for (const TokenId id : ids) {
    const std::string& piece = pieces.at(id);
    if (piece.size() == 6 && piece.starts_with("<0x")) {
      text += static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16));
      continue;
    }
    for (std::size_t i = 0; i < piece.size();) {
      const bool blank = piece.substr(i).starts_with("\u2581");
      text += blank ? ' ' : piece[i];
      i += blank ? 3 : 1;
    }
  }
  return text;
}

TEST(Stories260k, GreedyTextIsThePublishedOne) {
  ASSAY_CASE_OR_SKIP(folder, "models/stories260k");
  const Weights weights(folder / "stories260K.gguf", 1);
  const auto* tokens = weights.checkpoint().gguf->find("tokenizer.ggml.tokens");
  ASSERT_NE(tokens, nullptr);
  const std::vector<std::string> pieces = std::get<gguf::Array>(tokens->value).strings();

  const auto model = make_model(weights, {});
  ReferenceOps ops({Precision::f32}, 1);
  const std::string expected = test::read_file(folder / "expected_greedy_200.txt");
  const auto made = TextEngine(*model, ops).generate({{.prompt = {1}, .max_new_tokens = 200}});
  std::string text = text_of(made.front().ids, pieces);
  if (text.starts_with(" ")) text.erase(0, 1);
  const std::string trimmed = expected.substr(0, expected.find_last_not_of('\n') + 1);
  EXPECT_EQ(text.substr(0, trimmed.size()), trimmed);
}

}  // namespace
}  // namespace assay
