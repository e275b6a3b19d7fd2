#include "refimpl/block_store/disk_level.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/system/error.h"
#include "refimpl/block_store/block_bytes.h"
#include "refimpl/block_store/block_name.h"

namespace assay {
namespace {

constexpr std::string_view kMagic = "assay block 2\n";

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

// Files held open while their layers are read; further blocks are read whole at once.
constexpr std::size_t kMostOpen = 128;

BlockKey layer_digest(const BlockKey& of_block, std::size_t layer, std::span<const std::byte> rows) {
  std::vector<std::byte> bytes;
  bytes.reserve(of_block.bytes.size() + 8 + rows.size());
  put_bytes(bytes, of_block.bytes);
  put_number(bytes, layer);
  bytes.insert(bytes.end(), rows.begin(), rows.end());
  return sha256_of(bytes);
}

bool is_digest(const BlockKey& digest, std::span<const std::byte> stored) {
  return std::memcmp(digest.bytes.data(), stored.data(), kDigestBytes) == 0;
}

// Rows of a file whose beginning was right.
class FileRows : public LayeredRows {
 public:
  FileRows(std::unique_ptr<BlockFileReader> file, const BlockKey& of_block, std::vector<std::size_t> numbers,
           NumberWidth width, std::shared_ptr<std::atomic<std::size_t>> open_files,
           std::function<void()> refuse)
      : file_(std::move(file)),
        of_block_(of_block),
        numbers_(std::move(numbers)),
        width_(width),
        open_files_(std::move(open_files)),
        refuse_(std::move(refuse)) {
    ++*open_files_;
  }
  FileRows(const FileRows&) = delete;
  FileRows& operator=(const FileRows&) = delete;
  ~FileRows() override { --*open_files_; }

  std::optional<std::vector<double>> next() override {
    std::vector<double> rows(numbers_.at(layer_));
    std::vector<std::byte> bytes(rows.size() * bytes_of(width_) + kDigestBytes);
    damaged_ = !file_->read(bytes);
    const auto numbers = std::span<const std::byte>(bytes).first(bytes.size() - kDigestBytes);
    damaged_ =
        damaged_ || !is_digest(layer_digest(of_block_, layer_, numbers), std::span(bytes).last(kDigestBytes));
    if (damaged_) return std::nullopt;
    get_numbers(numbers, width_, rows);
    ++layer_;
    return rows;
  }
  // Where one of several blocks that came together was damaged, the others may be, too: they are read to their ends.
  void over(bool whole) override {
    while (!whole && !damaged_ && layer_ < numbers_.size()) next();
    if (damaged_) refuse_();
  }

 private:
  std::unique_ptr<BlockFileReader> file_;
  BlockKey of_block_;
  std::vector<std::size_t> numbers_;
  NumberWidth width_;
  std::shared_ptr<std::atomic<std::size_t>> open_files_;
  std::function<void()> refuse_;
  std::size_t layer_ = 0;
  bool damaged_ = false;
};

}  // namespace

DiskLevel::DiskLevel(Ops& ops, const BlockStorage& storage, const DiskOptions& options)
    : ops_(ops),
      storage_(storage),
      width_(stored_width(ops.arithmetic())),
      made_of_(sha256_of(std::as_bytes(std::span<const char>(composition(storage, ops.arithmetic()))))),
      by_layer_(options.by_layer),
      folder_(options.folder, options.most_bytes, options.told) {}

std::vector<std::size_t> DiskLevel::layer_numbers(std::size_t group) const {
  std::vector<std::size_t> numbers;
  for (const std::size_t layer : storage_.groups().at(group).layers)
    numbers.push_back((storage_.widths()[layer].key_width + storage_.widths()[layer].value_width) *
                      storage_.block_tokens());
  return numbers;
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
  std::size_t bytes = header(group, any, with_states).size() + kDigestBytes;
  if (with_states) bytes += bytes_of(width_) * numbers_of_states();
  for (const std::size_t numbers : layer_numbers(group)) bytes += bytes_of(width_) * numbers + kDigestBytes;
  return bytes;
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
  std::vector<std::byte>& head = unsaved.sections.emplace_back(header(group, content, with_states));
  const std::size_t plain = head.size();
  if (with_states) {
    for (const Matrix& state : *content.states) put_numbers(head, ops_.download(state), width_);
    if (head.size() - plain != bytes_of(width_) * numbers_of_states())
      return std::nullopt;  // a state of nothing
  }
  const bool room =
      folder_.reserve(unsaved.name, file_bytes(group, with_states), [&](const std::string& name) {
        const bool spared = wanted_ && wanted_(block_key_of(name));
        spared_ += spared ? 1 : 0;
        return spared;
      });
  if (!room) return std::nullopt;
  const std::vector<double> all = rows();
  std::span<const double> rest(all);
  for (const std::size_t numbers : layer_numbers(group)) {
    put_numbers(unsaved.sections.emplace_back(), rest.first(numbers), width_);
    rest = rest.subspan(numbers);
  }
  return unsaved;
}

void DiskLevel::seal(Unsaved& unsaved) {
  const BlockKey of_block = sha256_of(unsaved.sections.front());
  for (std::size_t i = 0; i < unsaved.sections.size(); ++i) {
    const std::vector<std::byte>& section = unsaved.sections[i];
    unsaved.bytes.insert(unsaved.bytes.end(), section.begin(), section.end());
    put_bytes(unsaved.bytes, (i == 0 ? of_block : layer_digest(of_block, i - 1, section)).bytes);
  }
  unsaved.sections.clear();
}

std::optional<OuterBlock> DiskLevel::fetch(std::size_t group, const BlockContent& wanted, bool with_states) {
  // Of two files the one with states serves either way.
  const bool stated = with_states || folder_.has(block_name(group, wanted.key, true));
  const std::string name = block_name(group, wanted.key, stated);
  std::unique_ptr<BlockFileReader> file = folder_.open(name, file_bytes(group, stated));
  if (!file) return std::nullopt;
  std::optional<OuterBlock> block = begin(std::move(file), name, group, wanted, stated);
  if (!block) {
    folder_.refuse(name);
    return std::nullopt;
  }
  if (!with_states) block->states = nullptr;
  if (by_layer_ && *open_files_ <= kMostOpen) return block;
  for (std::size_t layer = 0; layer < layer_numbers(group).size(); ++layer) {
    const std::optional<std::vector<double>> rows = block->later->next();
    if (!rows) {
      folder_.refuse(name);
      return std::nullopt;
    }
    block->rows.insert(block->rows.end(), rows->begin(), rows->end());
  }
  block->later = nullptr;
  return block;
}

// What comes before the rows is read and is what is wanted.
std::optional<OuterBlock> DiskLevel::begin(std::unique_ptr<BlockFileReader> file, const std::string& name,
                                           std::size_t group, const BlockContent& wanted, bool stated) {
  const std::vector<std::byte> wanted_header = header(group, wanted, stated);
  const std::size_t states = stated ? bytes_of(width_) * numbers_of_states() : 0;
  std::vector<std::byte> bytes(wanted_header.size() + states + kDigestBytes);
  if (!file->read(bytes)) return std::nullopt;
  const auto before = std::span(bytes).first(bytes.size() - kDigestBytes);
  const BlockKey of_block = sha256_of(before);
  if (!std::equal(wanted_header.begin(), wanted_header.end(), bytes.begin()) ||
      !is_digest(of_block, std::span(bytes).last(kDigestBytes)))
    return std::nullopt;
  OuterBlock block;
  if (stated)
    block.states =
        std::make_shared<const SequenceCache::States>(states_from(before.subspan(wanted_header.size())));
  block.later = std::make_shared<FileRows>(std::move(file), of_block, layer_numbers(group), width_,
                                           open_files_, [this, name] { folder_.refuse(name); });
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
