// The components of tokenizers/src/decoders. One deliberate difference: invalid UTF-8 that byte tokens make
// is passed on as bytes, not replaced token by token.
#include "refimpl/tokenizers/decoder.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/system/error.h"
#include "refimpl/tokenizers/byte_level.h"
#include "refimpl/tokenizers/json_access.h"
#include "refimpl/tokenizers/regex.h"
#include "refimpl/tokenizers/unicode.h"
#include "refimpl/tokenizers/vocabulary.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// A step that treats each piece alone, but may treat the first otherwise.
class PieceByPiece : public DecodeStep {
 public:
  using Change = std::function<std::string(std::string piece, bool first)>;
  explicit PieceByPiece(Change change) : change_(std::move(change)) {}
  void push(std::string piece, std::vector<std::string>& out) override {
    out.push_back(change_(std::move(piece), std::exchange(first_, false)));
  }

 private:
  Change change_;
  bool first_ = true;
};

DecodeStepMaker each_piece(PieceByPiece::Change change) {
  return [change = std::move(change)] { return std::make_unique<PieceByPiece>(change); };
}

// Every `from` becomes `to`, from left to right.
std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, done)) {
    out.append(text, done, at - done);
    out += to;
    done = at + from.size();
  }
  return out.append(text, done);
}

// English as WordPiece tokenizers tidy it.
std::string tidy(std::string text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRules = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) text = replace_all(std::move(text), from, to);
  return text;
}

// Collects everything: for the rare step that needs the whole text.
class WholeText : public DecodeStep {
 public:
  explicit WholeText(PieceByPiece::Change change) : change_(std::move(change)) {}
  void push(std::string piece, std::vector<std::string>&) override { text_ += piece; }
  void finish(std::vector<std::string>& out) override { out.push_back(change_(std::move(text_), true)); }

 private:
  PieceByPiece::Change change_;
  std::string text_;
};

struct StripOptions {
  std::string content;  // one character
  std::uint64_t start = 0, stop = 0;
};

std::string strip_piece(std::string_view piece, const StripOptions& options) {
  std::string_view rest = piece;
  for (std::uint64_t i = 0; i < options.start && rest.starts_with(options.content); ++i)
    rest.remove_prefix(options.content.size());
  for (std::uint64_t i = 0; i < options.stop && rest.ends_with(options.content); ++i)
    rest.remove_suffix(options.content.size());
  return std::string(rest);
}

// Strip after Fuse: the ends are those of the whole text, which arrives in parts. Parts cut characters in two
// only where byte tokens do, and `content` is ASCII, so looking at parts is enough.
class StripStream : public DecodeStep {
 public:
  explicit StripStream(StripOptions options) : options_(std::move(options)) {}

  void push(std::string piece, std::vector<std::string>& out) override {
    std::string_view rest = piece;
    while (stripped_ < options_.start && !rest.empty()) {
      if (!rest.starts_with(options_.content)) {
        stripped_ = options_.start;
        break;
      }
      rest.remove_prefix(options_.content.size());
      ++stripped_;
    }
    held_ += rest;
    // What the end may be stripped of stays.
    std::string_view sure = held_;
    for (std::uint64_t i = 0; i < options_.stop && sure.ends_with(options_.content); ++i)
      sure.remove_suffix(options_.content.size());
    const std::size_t length = sure.size();
    out.emplace_back(sure);
    held_.erase(0, length);
  }

 private:
  StripOptions options_;
  std::uint64_t stripped_ = 0;
  std::string held_;  // dropped at the end
};

// BPEDecoder: the suffix that ends words becomes a space, but for the last piece's.
class SuffixStep : public DecodeStep {
 public:
  explicit SuffixStep(std::string suffix) : suffix_(std::move(suffix)) {}
  void push(std::string piece, std::vector<std::string>& out) override {
    if (held_) out.push_back(replace_all(std::move(*held_), suffix_, " "));
    held_ = std::move(piece);
  }
  void finish(std::vector<std::string>& out) override {
    if (held_) out.push_back(replace_all(std::move(*held_), suffix_, ""));
  }

 private:
  std::string suffix_;
  std::optional<std::string> held_;
};

// CTC: repetitions are one, padding is nothing.
struct CtcOptions {
  std::string pad, delimiter;
  bool cleanup = true;
};
class CtcStep : public DecodeStep {
 public:
  explicit CtcStep(CtcOptions options) : options_(std::move(options)) {}
  void push(std::string piece, std::vector<std::string>& out) override {
    if (previous_ == piece) return;
    previous_ = piece;
    piece = replace_all(std::move(piece), options_.pad, "");
    if (options_.cleanup) piece = replace_all(tidy(std::move(piece)), options_.delimiter, " ");
    if (!piece.empty()) out.push_back(std::move(piece));
  }

 private:
  CtcOptions options_;
  std::optional<std::string> previous_;
};

std::string from_byte_level(std::string piece, bool) {
  auto bytes = byte_level::decoded(piece);
  return bytes ? std::move(*bytes) : std::move(piece);
}

std::string from_byte_piece(std::string piece, bool) {
  const auto byte = byte_of_piece(piece);
  return byte ? std::string(1, static_cast<char>(*byte)) : std::move(piece);
}

// SentencePiece's way: the mark is a space, but for the one that begins the text.
std::string from_marked(std::string piece, bool first) {
  static const std::string kMark = "▁";
  if (first && piece.compare(0, kMark.size(), kMark) == 0) piece.erase(0, kMark.size());
  return from_byte_piece(replace_all(std::move(piece), kMark, " "), first);
}

// Reads a decoder and its sub-decoders, which know whether the pieces were fused before them.
class PlanReader {
 public:
  explicit PlanReader(const fs::path& source) : source_(source) {}

  void read(const ParsedJson& config) {
    const std::string type = component_type(config, "the decoder", source_);
    if (type == "Sequence") {
      for (const ParsedJson& step : list_member(config, "decoders", source_)) read(step);
    } else if (type == "ByteLevel") {
      add(from_byte_level);
      fused_ = true;
    } else if (type == "ByteFallback") {
      add(from_byte_piece);
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "Metaspace") {
      metaspace(config);
    } else if (type == "Replace") {
      replace(config);
    } else if (type == "Strip") {
      strip(config);
    } else if (type == "WordPiece") {
      const auto steps = wordpiece_decoder(string_member(config, "prefix", "##", source_),
                                           bool_member(config, "cleanup", true, source_));
      plan.insert(plan.end(), steps.begin(), steps.end());
    } else if (type == "BPEDecoder") {
      const std::string suffix = string_member(config, "suffix", "</w>", source_);
      plan.push_back([suffix] { return std::make_unique<SuffixStep>(suffix); });
    } else if (type == "CTC") {
      const CtcOptions options{string_member(config, "pad_token", "<pad>", source_),
                               string_member(config, "word_delimiter_token", "|", source_),
                               bool_member(config, "cleanup", true, source_)};
      plan.push_back([options] { return std::make_unique<CtcStep>(options); });
    } else {
      throw Error::input(fmt::format("decoder of a type we do not know: {}", type)).in(source_);
    }
  }

  DecoderPlan plan;

 private:
  void add(PieceByPiece::Change change) { plan.push_back(each_piece(std::move(change))); }

  void metaspace(const ParsedJson& config) {
    const bool prefix = bool_member(config, "add_prefix_space", true, source_);
    const std::string scheme = string_member(config, "prepend_scheme", prefix ? "always" : "never", source_);
    const std::string mark = string_member(config, "replacement", "▁", source_);
    const bool drop_first = scheme != "never";
    add([mark, drop_first](std::string piece, bool first) {
      return replace_all(std::move(piece), mark, first && drop_first ? "" : " ");
    });
  }

  void replace(const ParsedJson& config) {
    const std::string content = string_member(config, "content", "", source_);
    const ParsedJson& literal = member(member(config, "pattern"), "String");
    if (literal.is_string()) {
      const auto from = literal.get<std::string>();
      return in_place(
          [from, content](std::string piece, bool) { return replace_all(std::move(piece), from, content); });
    }
    const auto pattern = std::make_shared<const TextPattern>(pattern_member(config, source_));
    in_place([pattern, content](const std::string& piece, bool) {
      std::string out;
      std::size_t done = 0;
      pattern->for_each_match(piece, [&](std::size_t begin, std::size_t end) {
        out.append(piece, done, begin - done).append(content);
        done = end;
      });
      return out.append(piece, done);
    });
  }

  // Of a fused text a part is not enough to match in.
  void in_place(PieceByPiece::Change change) {
    if (!fused_) return add(std::move(change));
    plan.push_back([change = std::move(change)] { return std::make_unique<WholeText>(change); });
  }

  void strip(const ParsedJson& config) {
    const StripOptions options{string_member(config, "content", " ", source_),
                               u64_member(config, "start", 0, source_),
                               u64_member(config, "stop", 0, source_)};
    if (options.content.empty()) throw Error::input("Strip has no content").in(source_);
    if (fused_ && options.content.size() == 1)
      plan.push_back([options] { return std::make_unique<StripStream>(options); });
    else
      in_place([options](const std::string& piece, bool) { return strip_piece(piece, options); });
  }

  const fs::path& source_;
  bool fused_ = false;
};

}  // namespace

DecoderPlan read_decoder(const ParsedJson& config, const fs::path& source) {
  if (config.is_null())
    return {each_piece([](const std::string& piece, bool first) { return first ? piece : " " + piece; })};
  PlanReader reader(source);
  reader.read(config);
  return std::move(reader.plan);
}

DecoderPlan byte_level_decoder() {
  return {each_piece(from_byte_level)};
}

DecoderPlan marked_decoder() {
  return {each_piece(from_marked)};
}

DecoderPlan verbatim_decoder() {
  return {};
}

DecoderPlan wordpiece_decoder(std::string_view prefix, bool cleanup) {
  return {each_piece([prefix = std::string(prefix), cleanup](std::string piece, bool first) {
    if (!first && !prefix.empty() && piece.starts_with(prefix))
      piece.erase(0, prefix.size());
    else if (!first)
      piece.insert(0, " ");
    return cleanup ? tidy(std::move(piece)) : piece;
  })};
}

DecodeChain::DecodeChain(const DecoderPlan& plan) {
  for (const DecodeStepMaker& make : plan) steps_.push_back(make());
}

std::string DecodeChain::run(std::vector<std::string> pieces, std::size_t from) {
  for (std::size_t i = from; i < steps_.size(); ++i) {
    std::vector<std::string> next;
    for (std::string& piece : pieces) steps_[i]->push(std::move(piece), next);
    pieces = std::move(next);
  }
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

std::string DecodeChain::push(std::string piece) {
  std::vector<std::string> pieces;
  pieces.push_back(std::move(piece));
  return run(std::move(pieces), 0);
}

std::string DecodeChain::finish() {
  std::string text;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    std::vector<std::string> last;
    steps_[i]->finish(last);
    text += run(std::move(last), i + 1);
  }
  return text;
}

}  // namespace assay
