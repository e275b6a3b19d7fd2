#include "verify/state_file.h"

#include <fmt/format.h>

#include <charconv>

#include "core/formats/json_events.h"
#include "core/system/error.h"
#include "core/system/json.h"
#include "core/system/report.h"

namespace assay {
namespace {

constexpr std::string_view kStateSchema = "assay.verify-state/1";
constexpr std::uint64_t kMaxStateBytes = 1ull << 30;
constexpr std::size_t kWritePiece = 1u << 20;
constexpr int kMaxDepth = 16;

class StateEvents {
 public:
  StateEvents(std::string_view text, const fs::path& source)
      : text_(text), reader_(text, kMaxDepth, *this), source_(source) {}

  StateEntries read() {
    reader_.read();
    if (!schema_seen_ || !files_seen_) fail("is not a state file of assay verify");
    return std::move(entries_);
  }

  void null() {}
  void boolean(bool value) {
    if (!in_entry()) return;
    if (key_ == "numbers") entry_->numbers = value;
    if (key_ == "tensor_digests") entry_->tensor_digests = value;
  }
  void whole_number(std::uint64_t value) {
    if (!in_entry()) return;
    if (key_ == "device") set(entry_->identity.device, value, 0);
    if (key_ == "inode") set(entry_->identity.inode, value, 1);
    if (key_ == "size") set(entry_->identity.size, value, 2);
    time_stamp();
  }
  void other_number(double, std::string_view) {
    if (in_entry()) time_stamp();
  }
  void time_stamp() {  // may lie before 1970
    if (key_ == "mtime_ns") set(entry_->identity.mtime_ns, signed_value(), 3);
    if (key_ == "ctime_ns") set(entry_->identity.ctime_ns, signed_value(), 4);
  }
  void string(std::string_view value) {
    if (depth_ == 1 && key_ == "schema") {
      if (value != kStateSchema) fail("is not a state file of assay verify");
      schema_seen_ = true;
    }
    if (!in_entry() || key_ != "digest") return;
    const bool sha1 = entry_key_.ends_with("#git-sha1");
    const auto digest = Digest::parse(sha1 ? DigestKind::git_sha1 : DigestKind::sha256, value);
    if (!digest) fail("holds a malformed digest");
    set(entry_->digest, *digest, 5);
  }
  void key(std::string_view name) {
    if (depth_ > 3) return;
    key_ = name;
    after_key_ = reader_.position();
    if (depth_ == 1) section_is_files_ = name == "files";
  }
  void start_object() {
    ++depth_;
    if (depth_ == 2 && section_is_files_) files_seen_ = true;
    if (depth_ != 3 || !section_is_files_) return;
    entry_key_ = key_;
    const auto [it, fresh] = entries_.try_emplace(entry_key_);
    if (!fresh) fail(fmt::format("lists {} twice", entry_key_));
    entry_ = &it->second;
    known_ = 0;
  }
  void end_object() {
    if (in_entry() && std::exchange(entry_, nullptr) != nullptr && known_ != kAll)
      fail(fmt::format("lacks something of {}", entry_key_));
    --depth_;
  }
  void start_array() {
    if (depth_ == 0) fail("is not a state file of assay verify");
    if (in_entry() && key_ == "tensors") tensors_begin_ = reader_.position() - 1;
    ++depth_;
  }
  void end_array() {
    --depth_;
    if (in_entry() && key_ == "tensors")
      entry_->tensors = text_.substr(tensors_begin_, reader_.position() - tensors_begin_);
  }
  [[noreturn]] void fail(std::string message) const {
    throw Error::input(std::move(message)).in(source_).at(reader_.position());
  }

 private:
  static constexpr unsigned kAll = (1u << 6) - 1;  // device, inode, size, two time stamps, digest
  bool in_entry() const { return depth_ == 3 && entry_ != nullptr; }

  template <typename T, typename V>
  void set(T& field, V value, unsigned number) {
    field = value;
    known_ |= 1u << number;
  }
  // From the key to here: blanks, a colon, blanks, the value.
  std::string_view value_text() const {
    const std::string_view text = text_.substr(after_key_, reader_.position() - after_key_);
    return text.substr(text.find_first_not_of(": \t\r\n"));
  }
  std::int64_t signed_value() const {
    const std::string_view text = value_text();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("holds a malformed time stamp");
    return value;
  }

  const std::string_view text_;
  JsonEventReader<StateEvents> reader_;
  const fs::path& source_;
  StateEntries entries_;
  int depth_ = 0;
  bool section_is_files_ = false, schema_seen_ = false, files_seen_ = false;
  std::string key_, entry_key_;
  std::uint64_t after_key_ = 0, tensors_begin_ = 0;
  StateEntry* entry_ = nullptr;  // the open one
  unsigned known_ = 0;           // which of its fields were there
};

std::string entry_text(const StateEntry& entry) {
  std::string text = fmt::format(
      R"({{"device": {}, "inode": {}, "size": {}, "mtime_ns": {}, "ctime_ns": {}, "digest": "{}")",
      entry.identity.device, entry.identity.inode, entry.identity.size, entry.identity.mtime_ns,
      entry.identity.ctime_ns, entry.digest.hex());
  if (!entry.tensors.empty()) {
    text += fmt::format(R"(, "numbers": {}, "tensor_digests": {}, "tensors": {})", entry.numbers,
                        entry.tensor_digests, entry.tensors);
  }
  return text + "}";
}

}  // namespace

StateEntries read_state_file(const fs::path& path) {
  const std::string text = read_small_file(path, kMaxStateBytes);
  return StateEvents(text, path).read();
}

void write_state_file(const fs::path& path, const StateEntries& entries) {
  AtomicFile file(path);
  std::string text =
      fmt::format("{{\"schema\": \"{}\", \"tool\": \"{}\",\n \"files\": {{", kStateSchema, ASSAY_VERSION);
  std::string_view separator = "\n  ";
  for (const auto& [key, entry] : entries) {
    text += separator;
    text += dump_json(Json(key), -1);
    text += ": ";
    text += entry_text(entry);
    separator = ",\n  ";
    if (text.size() < kWritePiece) continue;
    file.write(text);
    text.clear();
  }
  file.write(text + "\n }}\n");
  file.commit();
}

}  // namespace assay
