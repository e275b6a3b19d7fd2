#include "refimpl/block_store/disk_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/system/error.h"
#include "refimpl/block_store/block_bytes.h"
#include "refimpl/block_store/block_name.h"

namespace assay {
namespace {

constexpr std::string_view kMagic = "assay block 1\n";

// All that the bytes of a block depend on beside its tokens and weights.
std::string composition(const BlockStorage& storage, const Arithmetic& arithmetic) {
  std::string text =
      fmt::format("{} tokens a block, {}\n", storage.block_tokens(), name(arithmetic.precision));
  for (std::size_t i = 0; i < storage.widths().size(); ++i) {
    const CacheWidth& width = storage.widths()[i];
    text += fmt::format("layer {} group {} window {}: {} {}", i, storage.group_of(i), width.window,
                        width.key_width, width.value_width);
    for (const StateShape& state : width.states)
      text += fmt::format(" state {} {}", state.rows, state.columns);
    text += '\n';
  }
  return text;
}

}  // namespace

DiskLevel::DiskLevel(Ops& ops, const BlockStorage& storage, const DiskOptions& options)
    : ops_(ops),
      storage_(storage),
      width_(stored_width(ops.arithmetic())),
      made_of_(sha256_of(std::as_bytes(std::span<const char>(composition(storage, ops.arithmetic()))))),
      folder_(options.folder, options.most_bytes, options.told) {}

std::size_t DiskLevel::numbers_of_rows(std::size_t group) const {
  std::size_t numbers = 0;
  for (const std::size_t layer : storage_.groups().at(group).layers)
    numbers += storage_.widths()[layer].key_width + storage_.widths()[layer].value_width;
  return numbers * storage_.block_tokens();
}

std::size_t DiskLevel::numbers_of_states() const {
  std::size_t numbers = 0;
  for (const CacheWidth& width : storage_.widths()) {
    for (const StateShape& state : width.states) numbers += state.rows * state.columns;
  }
  return numbers;
}

std::vector<std::byte> DiskLevel::header(std::size_t group, const BlockContent& content,
                                         bool with_states) const {
  std::vector<std::byte> bytes;
  for (const char c : kMagic) bytes.push_back(static_cast<std::byte>(c));
  put_bytes(bytes, content.key.bytes);
  put_bytes(bytes, content.parent.bytes);
  put_bytes(bytes, made_of_.bytes);
  for (const std::uint64_t value :
       {std::uint64_t{bytes_of(width_)}, std::uint64_t{group}, std::uint64_t{content.number},
        std::uint64_t{with_states ? 1U : 0U}, std::uint64_t{content.tokens.size()}})
    put_number(bytes, value);
  for (const TokenId id : content.tokens) put_number(bytes, id);
  return bytes;
}

std::size_t DiskLevel::file_bytes(std::size_t group, bool with_states) const {
  BlockContent any;
  any.tokens.resize(storage_.block_tokens());
  return header(group, any, with_states).size() +
         bytes_of(width_) * (numbers_of_rows(group) + (with_states ? numbers_of_states() : 0)) + kDigestBytes;
}

bool DiskLevel::has(std::size_t group, const BlockContent& wanted, bool with_states) const {
  if (folder_.has(block_name(group, wanted.key, true))) return true;
  return !with_states && folder_.has(block_name(group, wanted.key, false));
}

void DiskLevel::keep(std::size_t group, BlockId block, const BlockContent& content) {
  std::optional<Unsaved> unsaved = prepare(group, content, [&] { return storage_.read(group, block); });
  if (!unsaved) return;
  seal(*unsaved);
  put(*unsaved);
}

std::optional<DiskLevel::Unsaved> DiskLevel::prepare(std::size_t group, const BlockContent& content,
                                                     const std::function<std::vector<double>()>& rows) {
  const bool with_states = content.states != nullptr && numbers_of_states() > 0;
  Unsaved unsaved{block_name(group, content.key, with_states), {}};
  if (folder_.has(unsaved.name)) {
    folder_.touch(unsaved.name);
    return std::nullopt;
  }
  if (!folder_.writing()) return std::nullopt;
  unsaved.bytes = header(group, content, with_states);
  unsaved.bytes.reserve(file_bytes(group, with_states));
  put_numbers(unsaved.bytes, rows(), width_);
  if (with_states) {
    for (const Matrix& state : *content.states) put_numbers(unsaved.bytes, ops_.download(state), width_);
  }
  if (unsaved.bytes.size() + kDigestBytes != file_bytes(group, with_states))
    return std::nullopt;  // a state of nothing
  return unsaved;
}

void DiskLevel::seal(Unsaved& unsaved) {
  put_bytes(unsaved.bytes, sha256_of(unsaved.bytes).bytes);
}

std::optional<OuterBlock> DiskLevel::fetch(std::size_t group, const BlockContent& wanted, bool with_states) {
  // Of two files the one with states serves either way.
  const bool stated = with_states || folder_.has(block_name(group, wanted.key, true));
  const std::string file = block_name(group, wanted.key, stated);
  const std::vector<std::byte> bytes = folder_.get(file, file_bytes(group, stated));
  if (bytes.empty()) return std::nullopt;
  const std::vector<std::byte> begins = header(group, wanted, stated);
  const auto before = std::span(bytes).first(bytes.size() - kDigestBytes);
  const BlockKey digest = sha256_of(before);
  if (!std::equal(begins.begin(), begins.end(), bytes.begin()) ||
      std::memcmp(digest.bytes.data(), bytes.data() + before.size(), kDigestBytes) != 0) {
    folder_.refuse(file);
    return std::nullopt;
  }
  OuterBlock block;
  block.rows.resize(numbers_of_rows(group));
  const auto rows = before.subspan(begins.size());
  get_numbers(rows, width_, block.rows);
  if (with_states)
    block.states = std::make_shared<const SequenceCache::States>(
        states_from(rows.subspan(block.rows.size() * bytes_of(width_))));
  return block;
}

SequenceCache::States DiskLevel::states_from(std::span<const std::byte> bytes) const {
  SequenceCache::States states;
  for (const CacheWidth& width : storage_.widths()) {
    for (const StateShape& shape : width.states) {
      const std::size_t size = shape.rows * shape.columns * bytes_of(width_);
      states.push_back(matrix_of(ops_, bytes.first(size), shape.rows, shape.columns));
      bytes = bytes.subspan(size);
    }
  }
  return states;
}

}  // namespace assay
