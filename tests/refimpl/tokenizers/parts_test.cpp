// Components of tokenizer.json one by one, every option of them, against the tokenizers crate
// (data/make_tokenizer_part_fixtures.py).
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "refimpl/tokenizers/decoder.h"
#include "refimpl/tokenizers/normalizer.h"
#include "refimpl/tokenizers/pre_tokenizer.h"
#include "refimpl/tokenizers/unicode.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

const ParsedJson& parts() {
  static const ParsedJson all = read_json(test::source_dir() / "data/fixtures/tokenizer_parts/parts.json");
  return all;
}

std::vector<std::string> strings(const ParsedJson& list) {
  return list.get<std::vector<std::string>>();
}

TEST(TokenizerParts, NormalizersMakeWhatTheCrateMakes) {
  const auto texts = strings(parts().at("texts"));
  for (const ParsedJson& each : parts().at("normalizers")) {
    const auto normalizer = read_normalizer(each.at("config"), "made");
    for (std::size_t i = 0; i < texts.size(); ++i)
      EXPECT_EQ(normalizer->apply(texts[i]), each.at("made")[i].get<std::string>())
          << each.at("config") << " of '" << texts[i] << "'";
  }
}

TEST(TokenizerParts, PreTokenizersCutAsTheCrateDoes) {
  const auto texts = strings(parts().at("texts"));
  for (const ParsedJson& each : parts().at("pre_tokenizers")) {
    const auto cutter = read_pre_tokenizer(each.at("config"), "made");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].empty()) continue;  // nothing is cut of nothing: the pipeline does not ask
      Words words{texts[i], {{0, static_cast<std::uint32_t>(texts[i].size()), true}}};
      cutter->apply(words);
      std::vector<std::string> made;
      for (const Words::Span& span : words.spans) {
        if (span.end > span.begin) made.emplace_back(words.of(span));
      }
      auto expected = strings(each.at("made")[i]);
      std::erase(expected, "");
      EXPECT_EQ(made, expected) << each.at("config") << " of '" << texts[i] << "'";
    }
  }
}

std::string joined(DecodeChain chain, const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += chain.push(piece);
  return text + chain.finish();
}

TEST(TokenizerParts, DecodersJoinAsTheCrateDoes) {
  const ParsedJson& lists = parts().at("pieces");
  for (const ParsedJson& each : parts().at("decoders")) {
    const DecoderPlan plan = read_decoder(each.at("config"), "made");
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (each.at("made")[i].is_null()) continue;  // the crate panics
      EXPECT_EQ(unicode::with_replacements(joined(DecodeChain(plan), strings(lists[i]))),
                each.at("made")[i].get<std::string>())
          << each.at("config") << " of " << lists[i];
    }
  }
}

// SentencePiece's own way (sentencepiece_processor.cc, Decode): the mark that begins the text was not in it.
TEST(TokenizerParts, TheFirstMarkOfATextIsNoSpace) {
  const DecoderPlan plan = marked_decoder();
  EXPECT_EQ(joined(DecodeChain(plan), {"▁a", "▁b", "▁▁c", "<0x21>"}), "a b  c!");
  EXPECT_EQ(joined(DecodeChain(plan), {"a▁", "▁"}), "a  ");
}

}  // namespace
}  // namespace assay
