#include "refimpl/tokenizers/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/system/error.h"
#include "core/system/file.h"
#include "refimpl/tokenizers/gguf_vocabulary.h"
#include "refimpl/tokenizers/hf_tokenizer.h"
#include "refimpl/tokenizers/sentencepiece.h"
#include "refimpl/tokenizers/tekken.h"
#include "refimpl/tokenizers/tiktoken.h"

namespace assay {
namespace {

constexpr std::uint64_t kMostFileBytes = 256ull << 20;
constexpr std::size_t kFewTokens = 16;  // a tenth of a tiny vocabulary is less than what may be added to it

bool has_extension(const fs::path& path, std::string_view extension) {
  return path.extension().string() == extension;
}

// models--org--name holds refs/main, which names a folder of snapshots/.
fs::path snapshot_of(const fs::path& folder) {
  if (!fs::is_directory(folder / "snapshots")) return folder;
  if (fs::is_regular_file(folder / "refs" / "main")) {
    const std::string revision = read_small_file(folder / "refs" / "main", 256);
    fs::path named = folder / "snapshots" / revision.substr(0, revision.find('\n'));
    if (is_safe_relative_path(revision.substr(0, revision.find('\n'))) && fs::is_directory(named))
      return named;
  }
  for (const auto& entry : fs::directory_iterator(folder / "snapshots")) {
    if (entry.is_directory()) return entry.path();
  }
  return folder;
}

std::vector<fs::path> files_with_extension(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && has_extension(entry.path(), extension)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

fs::path tokenizer_in(const fs::path& folder) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "tokenizer.json", "tokenizer.model", "spiece.model",  "sentencepiece.bpe.model",
      "vocab.json",     "tiktoken.model",  "qwen.tiktoken", "tekken.json"};
  for (const std::string_view name : kNames) {
    if (fs::is_regular_file(folder / name)) return folder / name;
  }
  for (const std::string_view extension : {".tiktoken", ".gguf", ".model"}) {
    const auto found = files_with_extension(folder, extension);
    if (!found.empty()) return found.front();
  }
  throw Error::input("no tokenizer in this folder")
      .in(folder)
      .remedy(
          "it should hold tokenizer.json, tokenizer.model, vocab.json with merges.txt, tekken.json, a rank "
          "file or a GGUF");
}

std::unique_ptr<Tokenizer> read_sentencepiece(std::string_view bytes, const TokenizerNeighbours& neighbours,
                                              const fs::path& path) {
  SentencePieceModel model = parse_sentencepiece_model(bytes, path);
  SentencePieceOptions options;
  options.vocabulary = model.vocabulary;
  options.added = merge_added(neighbours, {}, options.vocabulary);
  // What is said of the model's own pieces holds for the model, too: a special one comes out of no text.
  for (const AddedToken& token : options.added) {
    if (model.vocabulary.find(token.content) == token.id)
      model.vocabulary.set_kind(token.id, options.vocabulary.kind(token.id));
  }
  const SpecialTokens named = special_tokens(neighbours, options.vocabulary);
  if (named.bos) model.special.bos = named.bos;
  if (named.eos) model.special.eos = named.eos;
  model.special.end_of_generation = named.end_of_generation;
  find_end_of_generation(model.special, options.vocabulary);
  // A bare model adds nothing, as the library itself; Llama's classes add BOS unless told otherwise.
  const bool llama =
      neighbours.tokenizer_class.starts_with("Llama") || neighbours.tokenizer_class.starts_with("Gemma");
  const bool t5 = neighbours.tokenizer_class.starts_with("T5");
  options.add_bos = neighbours.add_bos.value_or(llama);
  options.add_eos = neighbours.add_eos.value_or(t5);
  const bool unigram = model.type == SentencePieceModel::Type::unigram;
  auto tokenizer = make_sentencepiece(std::move(model), std::move(options));
  tokenizer->describe(fmt::format("SentencePiece model: {}", unigram ? "Unigram" : "BPE"));
  return tokenizer;
}

// Where no tokenizer_config.json names them.
std::vector<std::pair<std::string, std::string>> own_tokens(const Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> tokens;
  const SpecialTokens& special = tokenizer.special();
  const std::pair<const char*, std::optional<TokenId>> all[] = {{"bos_token", special.bos},
                                                                {"eos_token", special.eos},
                                                                {"unk_token", special.unk},
                                                                {"pad_token", special.pad}};
  for (const auto& [name, id] : all) {
    if (id) tokens.emplace_back(name, tokenizer.piece(*id));
  }
  return tokens;
}

std::unique_ptr<Tokenizer> read_file(const fs::path& path, std::string_view pattern) {
  if (has_extension(path, ".gguf")) return load_tokenizer(gguf::read_header(File::open(path)), path);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const TokenizerNeighbours neighbours = read_neighbours(folder);
  const std::string contents = read_small_file(path, kMostFileBytes);
  std::unique_ptr<Tokenizer> tokenizer;
  if (path.filename() == "vocab.json" || path.filename() == "merges.txt") {
    const std::string vocab = read_small_file(folder / "vocab.json", kMostFileBytes);
    const std::string merges = read_small_file(folder / "merges.txt", kMostFileBytes);
    tokenizer = read_vocab_and_merges(vocab, merges, neighbours, folder / "vocab.json");
  } else if (contents.starts_with(gguf::kMagic)) {
    tokenizer = load_tokenizer(gguf::read_header(File::open(path)), path);
  } else if (looks_like_ranks(std::string_view(contents).substr(0, 4096))) {
    tokenizer = read_tiktoken(contents, pattern, neighbours, path);
  } else if (is_tekken(path)) {
    tokenizer = read_tekken(contents, neighbours, path);
  } else if (contents.find_first_not_of(" \t\r\n") != std::string::npos &&
             contents[contents.find_first_not_of(" \t\r\n")] == '{') {
    tokenizer = read_hf_tokenizer(contents, neighbours, path);
  } else {
    tokenizer = read_sentencepiece(contents, neighbours, path);
  }
  if (tokenizer->chat_templates().empty()) tokenizer->set_chat_templates(neighbours.chat_templates);
  if (tokenizer->template_tokens().empty())
    tokenizer->set_template_tokens(neighbours.template_tokens.empty() ? own_tokens(*tokenizer)
                                                                      : neighbours.template_tokens);
  return tokenizer;
}

// Vocabularies are padded upwards to round numbers, and tokenizers have tokens added that their models never
// got rows for (Gemma 3's for images, pads): those ids are refused where a text holds one. A tokenizer much
// smaller, or larger, is another model's.
void check_sizes(std::size_t tokens, std::size_t vocabulary, const fs::path& path) {
  const std::size_t tenth = std::max(vocabulary / 10, kFewTokens);
  if (tokens <= vocabulary + tenth && tokens + tenth >= vocabulary) return;
  throw Error::input(
      fmt::format("the tokenizer has {} tokens, the model {}: it is another model's", tokens, vocabulary))
      .in(path)
      .remedy("bring the model's own tokenizer, or give --tokens");
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path, std::string_view pattern) {
  if (!fs::exists(path)) throw Error::input("no such file or folder").in(path);
  const fs::path file = fs::is_directory(path) ? tokenizer_in(snapshot_of(path)) : path;
  try {
    return read_file(file, pattern);
  } catch (Error& error) {
    throw error.in(file);
  }
}

std::unique_ptr<Tokenizer> load_tokenizer(const gguf::Header& header, const fs::path& path) {
  auto tokenizer = read_gguf_tokenizer(header, path);
  tokenizer->set_template_tokens(own_tokens(*tokenizer));
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_tokenizer(const Checkpoint& checkpoint, std::size_t vocabulary) {
  const fs::path& path = checkpoint.gguf ? checkpoint.files.front().path : checkpoint.root;
  std::unique_ptr<Tokenizer> tokenizer =
      checkpoint.gguf ? load_tokenizer(*checkpoint.gguf, path) : load_tokenizer(path);
  check_sizes(tokenizer->vocab_size(), vocabulary, path);
  return tokenizer;
}

std::unique_ptr<Tokenizer> find_tokenizer(const Checkpoint& checkpoint, std::size_t vocabulary) {
  try {
    return load_tokenizer(checkpoint, vocabulary);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) throw;
    return nullptr;
  }
}

}  // namespace assay
