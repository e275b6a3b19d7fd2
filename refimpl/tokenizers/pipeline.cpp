#include "refimpl/tokenizers/pipeline.h"

#include <algorithm>

namespace assay {
namespace {

class Pipeline : public Tokenizer {
 public:
  explicit Pipeline(PipelineParts parts)
      : Tokenizer(std::move(parts.vocabulary), parts.special), parts_(std::move(parts)) {
    std::vector<AddedToken> verbatim, normalized;
    for (AddedToken token : parts_.added) {
      if (!token.normalized) {
        verbatim.push_back(std::move(token));
        continue;
      }
      if (parts_.normalizer) token.content = parts_.normalizer->apply(token.content);
      normalized.push_back(std::move(token));
    }
    verbatim_ = AddedTokenFinder(std::move(verbatim));
    normalized_ = AddedTokenFinder(std::move(normalized));
  }

  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const override {
    check_length(text);
    std::vector<TokenId> ids;
    if (!options.add_special) return encode_text(text, options, ids), ids;
    for (const auto& part : parts_.frame) {
      if (part)
        ids.push_back(*part);
      else
        encode_text(text, options, ids);
    }
    return ids;
  }

  std::unique_ptr<TokenDecoder> decoder(bool skip_special) const override {
    return std::make_unique<ChainDecoder>(*this, skip_special);
  }

 private:
  class ChainDecoder : public TokenDecoder {
   public:
    ChainDecoder(const Pipeline& tokenizer, bool skip_special)
        : tokenizer_(tokenizer), skip_special_(skip_special), chain_(tokenizer.parts_.decoder) {}
    std::string push(TokenId id) override {
      const std::string& piece = tokenizer_.piece(id);
      if (skip_special_ && tokenizer_.vocabulary().kind(id) == PieceKind::control) return {};
      return chain_.push(piece);
    }
    std::string finish() override { return chain_.finish(); }

   private:
    const Pipeline& tokenizer_;
    bool skip_special_;
    DecodeChain chain_;
  };

  void encode_text(std::string_view text, EncodeOptions options, std::vector<TokenId>& ids) const {
    const auto session = parts_.model->session(vocabulary());
    for (const TextPiece& piece : verbatim_.split(text, options.parse_special)) {
      if (piece.token)
        ids.push_back(*piece.token);
      else
        encode_raw(piece.text, piece.text.data() == text.data(), options, *session, ids);
    }
  }

  // `at_start`: `raw` begins where the user's text does.
  void encode_raw(std::string_view raw, bool at_start, EncodeOptions options, SubwordModel::Session& session,
                  std::vector<TokenId>& ids) const {
    std::string made;
    std::string_view text = raw;
    if (parts_.normalizer) text = made = parts_.normalizer->apply(raw);
    check_length(text);
    for (const TextPiece& piece : normalized_.split(text, options.parse_special)) {
      if (piece.token) {
        ids.push_back(*piece.token);
        continue;
      }
      Words words{std::string(piece.text), {}};
      words.spans.push_back(
          {0, static_cast<std::uint32_t>(piece.text.size()), at_start && piece.text.data() == text.data()});
      if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(words);
      for (const Words::Span& span : words.spans) session.encode(words.of(span), ids);
    }
  }

  PipelineParts parts_;
  AddedTokenFinder verbatim_, normalized_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline(PipelineParts parts) {
  return std::make_unique<Pipeline>(std::move(parts));
}

SpecialFrame bos_eos_frame(const SpecialTokens& special, bool add_bos, bool add_eos) {
  SpecialFrame frame;
  if (add_bos && special.bos) frame.emplace_back(special.bos);
  frame.emplace_back();
  if (add_eos && special.eos) frame.emplace_back(special.eos);
  return frame;
}

}  // namespace assay
