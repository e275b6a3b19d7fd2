#include "verify/node_receipt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "core/formats/json.h"
#include "core/formats/json_elements.h"
#include "core/system/error.h"
#include "core/system/launcher.h"
#include "core/system/text.h"
#include "verify/expected/signature_methods.h"
#include "verify/receipt.h"
#include "verify/receipt_mac.h"

namespace assay {
namespace {

constexpr std::uint64_t kLongestReceipt = 1ull << 30;  // a million files
constexpr JsonLimits kReceiptLimits{.max_bytes = kLongestReceipt, .max_depth = 16};
constexpr std::uint64_t kLongestBundle = 16ull << 20;
constexpr std::size_t kErrorsKept = 64, kLongestText = 1000;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Error damaged(std::string_view why) {
  return Error::input(fmt::format("is no receipt, or a damaged one: {}", why));
}

// In words that follow "the receipt".
Error cannot_be(std::string_view done, int error_number) {
  return Error::io(fmt::format("cannot be {}: {}", done, std::generic_category().message(error_number)));
}

std::string text_at(const ParsedJson& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return {};
  if (!it->is_string()) throw damaged(fmt::format("{} is no text", key));
  return it->get<std::string>();
}

std::uint64_t number_at(const ParsedJson& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) throw damaged(fmt::format("{} is no number", key));
  return it->get<std::uint64_t>();
}

std::uint32_t rank_at(const ParsedJson& object, const char* key) {
  const std::uint64_t value = number_at(object, key);
  if (value > kMostRanks) throw damaged(fmt::format("{} is {}", key, value));
  return static_cast<std::uint32_t>(value);
}

// "16777216-33554431", as http_range() writes it. In order, none empty, none beside another.
std::vector<ByteRange> ranges_at(const ParsedJson& object, const char* key) {
  std::vector<ByteRange> ranges;
  const auto it = object.find(key);
  if (it == object.end()) return ranges;
  if (!it->is_array()) throw damaged(fmt::format("{} is no list", key));
  for (const ParsedJson& element : *it) {
    if (!element.is_string()) throw damaged(fmt::format("{} holds no text", key));
    const std::string& text = element.get_ref<const std::string&>();
    const auto dash = text.find('-');
    if (dash == std::string::npos) throw damaged(fmt::format("{} holds no range", key));
    const auto first = parse_u64(std::string_view(text).substr(0, dash));
    const auto last = parse_u64(std::string_view(text).substr(dash + 1));
    if (!first || !last || *last < *first || *last == UINT64_MAX ||
        (!ranges.empty() && *first < ranges.back().end))
      throw damaged(fmt::format("{} holds no range", key));
    ranges.push_back({*first, *last + 1});
  }
  return ranges;
}

std::vector<Digest> pieces_at(const ParsedJson& object) {
  std::vector<Digest> pieces;
  const auto it = object.find("pieces");
  if (it == object.end()) return pieces;
  if (!it->is_array()) throw damaged("pieces is no list");
  for (const ParsedJson& element : *it) {
    const auto digest = element.is_string()
                            ? Digest::parse(DigestKind::sha256, element.get_ref<const std::string&>())
                            : std::nullopt;
    if (!digest) throw damaged("pieces holds no digest");
    pieces.push_back(*digest);
  }
  return pieces;
}

void check_entry(const std::string& name, const NodeEntry& entry) {
  if (!is_safe_relative_path(name)) throw damaged(fmt::format("it names the unsafe path '{}'", name));
  constexpr std::array<std::string_view, 6> kStatuses = {"ok",    "failed",    "missing",
                                                         "extra", "unchecked", "unreadable"};
  if (std::find(kStatuses.begin(), kStatuses.end(), entry.status) == kStatuses.end())
    throw damaged(fmt::format("of {} it says '{}'", name, entry.status));
  if (entry.status != "ok") return;
  const bool compared = !entry.digest.empty() && entry.digest == entry.expected;
  const bool in_parts = !entry.expected.empty() && !entry.parts.empty() && entry.digest.empty();
  if ((!compared && !in_parts) || !entry.damaged.empty())
    throw damaged(fmt::format("{} is called ok, and was not found to be", name));
}

void add_file(NodeReceipt& receipt, const ParsedJson& object) {
  if (!object.is_object()) throw damaged("a file is no object");
  NodeEntry entry{.status = text_at(object, "status"),
                  .expected = text_at(object, "expected"),
                  .digest = text_at(object, "digest"),
                  .diagnosis = text_at(object, "diagnosis"),
                  .expected_size = {},
                  .size = number_at(object, "size"),
                  .damaged = ranges_at(object, "damaged_ranges"),
                  .parts = ranges_at(object, "parts"),
                  .pieces = pieces_at(object)};
  if (object.contains("expected_size")) entry.expected_size = number_at(object, "expected_size");
  if (entry.diagnosis.size() > kLongestText) entry.diagnosis.resize(kLongestText);
  std::string name = text_at(object, "name");
  check_entry(name, entry);
  if (!receipt.files.emplace(name, std::move(entry)).second)
    throw damaged(fmt::format("it names {} twice", name));
}

NodeMode mode_of(const std::string& name) {
  if (name == "share") return NodeMode::share;
  if (name == "copy") return NodeMode::copy;
  if (name == "idle") return NodeMode::idle;
  throw damaged(fmt::format("its mode is '{}'", name));
}

void read_rank(NodeReceipt& receipt, const ParsedJson& rank) {
  if (!rank.is_object()) throw damaged("rank is no object");
  receipt.ranked = true;
  receipt.mode = mode_of(text_at(rank, "mode"));
  receipt.rank = rank_at(rank, "rank");
  receipt.ranks = rank_at(rank, "ranks");
  receipt.run = text_at(rank, "run");
  receipt.node = text_at(rank, "node");
  if (receipt.run.size() > kLongestText || receipt.node.size() > kLongestText)
    throw damaged("its names are too long");
  if (receipt.rank >= receipt.ranks)
    throw damaged(fmt::format("it is of rank {} of {}", receipt.rank, receipt.ranks));
}

void read_frame(NodeReceipt& receipt, const ParsedJson& document) {
  if (!document.is_object() || text_at(document, "schema") != "assay.receipt/1")
    throw damaged("another kind of JSON");
  receipt.verdict = text_at(document, "verdict");
  receipt.list = text_at(document, "list");
  if (document.contains("rank")) read_rank(receipt, document.at("rank"));
  if (document.contains("piece_bytes")) receipt.piece_bytes = number_at(document, "piece_bytes");
  if (receipt.mode == NodeMode::idle) return;
  constexpr std::array<std::string_view, 5> kVerdicts = {"ok", "partial", "well_formed", "interrupted",
                                                         "failed"};
  if (std::find(kVerdicts.begin(), kVerdicts.end(), receipt.verdict) == kVerdicts.end())
    throw damaged("it has no verdict");
  if (receipt.list.empty())
    throw damaged("it does not say what was expected").remedy("verify again, by this version");
  const auto scope = document.find("scope");
  if (scope == document.end() || !scope->is_object()) throw damaged("it does not say what was looked at");
  receipt.include = text_at(*scope, "include");
  receipt.exclude = text_at(*scope, "exclude");
  const auto errors = document.find("errors");
  if (errors == document.end() || !errors->is_array()) return;
  for (const ParsedJson& error : *errors) {
    if (!error.is_object() || receipt.errors.size() >= kErrorsKept) continue;
    const std::string file = text_at(error, "file");
    std::string said = (file.empty() ? "" : file + ": ") + text_at(error, "message");
    if (said.size() > kLongestText) said.resize(kLongestText);
    receipt.errors.push_back(std::move(said));
  }
}

// What is not JSON is told in the words that all such documents get.
SplitJson split_of(const std::string& text) {
  try {
    return split_array(text, "files", kReceiptLimits.max_depth);
  } catch (const Error& error) {
    try {
      parse_json(text, {}, kReceiptLimits);
    } catch (const Error& known) {
      throw damaged(known.message());
    }
    throw damaged(error.message());
  }
}

void check_code(std::string_view text, const std::string& key) {
  switch (check_seal(text, key)) {
    case Seal::whole: return;
    case Seal::none: throw Error::input("carries no authentication code, and a key was given");
    case Seal::broken: break;
  }
  throw Error::input("has an authentication code that does not fit: it was edited, or made with another key");
}

void check_signed(const fs::path& file, std::string_view text, const SignatureMethods& signers) {
  const fs::path bundle = signature_of_receipt(file);
  std::error_code ignored;
  if (fs::symlink_status(bundle, ignored).type() == fs::file_type::not_found)
    throw Error::input(fmt::format("is not signed: there is no {}", bundle.filename().string()));
  const signature::Bundle read = [&] {
    try {
      return signature::parse_bundle(read_untrusted(bundle, kLongestBundle), bundle);
    } catch (const Error& error) {
      throw Error::input(
          fmt::format("is not signed as it has to be: {}: {}", bundle.filename().string(), error.message()));
    }
  }();
  try {
    signer_of_text(read, signers, text);
  } catch (const Error& error) {
    throw Error::input(fmt::format("is not signed as it has to be: {}", error.message()));
  }
}

}  // namespace

std::string read_untrusted(const fs::path& file, std::uint64_t limit) {
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (opened.number() < 0 && errno == ELOOP) throw Error::input("is a symbolic link, which is not followed");
  if (opened.number() < 0) throw cannot_be("opened", errno);
  struct stat about {};
  if (::fstat(opened.number(), &about) != 0) throw cannot_be("looked at", errno);
  if (!S_ISREG(about.st_mode)) throw Error::input("is no regular file");
  if (static_cast<std::uint64_t>(about.st_size) > limit)
    throw Error::input(fmt::format("is {}, longer than any receipt",
                                   human_bytes(static_cast<std::uint64_t>(about.st_size))));
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::read(opened.number(), text.data() + got, text.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw cannot_be("read", errno);
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

NodeReceipt read_node_receipt(const fs::path& file, const ReceiptKey& key, const SignatureMethods* signers) {
  const std::string text = read_untrusted(file, kLongestReceipt);
  if (key) check_code(text, *key);
  if (signers != nullptr) check_signed(file, text, *signers);
  return parse_node_receipt(text, file);
}

NodeReceipt parse_node_receipt(const std::string& text, const fs::path& file) {
  NodeReceipt receipt;
  receipt.file = file.string();
  const auto json = [&](std::string_view part) {
    try {
      return parse_json(part, file, kReceiptLimits);
    } catch (const Error& error) {
      throw damaged(error.message());
    }
  };
  try {
    const SplitJson split = split_of(text);
    read_frame(receipt, json(split.rest));
    if (split.end == split.begin) throw damaged("it lists no files");
    for_each_object(std::string_view(text).substr(split.begin, split.end - split.begin),
                    kReceiptLimits.max_depth,
                    [&](std::string_view entry) { add_file(receipt, json(entry)); });
  } catch (const ParsedJson::exception&) {
    throw damaged("it is not what a receipt holds");
  }
  return receipt;
}

std::string gathered_name(std::uint32_t rank) {
  return fmt::format("rank-{:05}.json", rank);
}

std::string begun_name(std::uint32_t rank) {
  return fmt::format("rank-{:05}.begun", rank);
}

}  // namespace assay
