#include "kernels/plugin/marshal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/numeric/codec.h"
#include "kernels/harness/case_run.h"

namespace assay {
namespace {

constexpr std::size_t kGuardElements = 32;  // elements before and behind a staged matrix
constexpr std::size_t kTail = 256;          // bytes behind what lies on a device

struct NamedType {
  ElementType type;
  std::int32_t abi;
};
constexpr std::array<NamedType, 8> kTypes = {{{ElementType::F32, ASSAY_F32},
                                              {ElementType::BF16, ASSAY_BF16},
                                              {ElementType::F16, ASSAY_F16},
                                              {ElementType::F64, ASSAY_F64},
                                              {ElementType::I8, ASSAY_I8},
                                              {ElementType::F8_E4M3, ASSAY_F8_E4M3},
                                              {ElementType::F8_E5M2, ASSAY_F8_E5M2},
                                              {ElementType::F8_E8M0, ASSAY_F8_E8M0}}};

// A NaN with a payload of its own.
std::uint32_t canary(std::int32_t type) {
  return type == ASSAY_BF16 ? 0x7FCAu : 0x7FCAFE01u;
}
std::size_t element_size(std::int32_t type) {
  return type == ASSAY_BF16 ? 2 : 4;
}
std::uint32_t coded(std::int32_t type, float value) {
  return type == ASSAY_BF16 ? static_cast<std::uint32_t>(encode(kBF16, value, Overflow::special))
                            : std::bit_cast<std::uint32_t>(value);
}
// Both types are what a float begins with.
float decoded(std::int32_t type, const std::byte* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, element_size(type));
  return std::bit_cast<float>(type == ASSAY_BF16 ? bits << 16 : bits);
}

// A matrix as it lies in a block: rows as far apart as at home, canaries before, between and behind.
struct BlockLayout {
  BlockLayout(const Matrix& m, std::int32_t of_type)
      : type(of_type), rows(m.rows()), columns(m.columns()), stride(m.stride()) {}
  std::size_t elements() const { return 2 * kGuardElements + rows * stride; }
  std::size_t bytes() const { return elements() * element_size(type); }
  std::size_t at(std::size_t row, std::size_t column) const {
    return (kGuardElements + row * stride + column) * element_size(type);
  }
  bool inside(std::size_t element) const {
    if (element < kGuardElements || element >= kGuardElements + rows * stride) return false;
    return (element - kGuardElements) % stride < columns;
  }
  std::int32_t type;
  std::size_t rows, columns, stride;
};

std::vector<std::byte> filled_block(const BlockLayout& layout, const Matrix& m, bool with_values) {
  std::vector<std::byte> block(layout.bytes());
  const std::size_t size = element_size(layout.type);
  const std::uint32_t nothing = canary(layout.type);
  for (std::size_t i = 0; i < layout.elements(); ++i) std::memcpy(&block[i * size], &nothing, size);
  for (std::size_t r = 0; with_values && r < layout.rows; ++r) {
    for (std::size_t c = 0; c < layout.columns; ++c) {
      const std::uint32_t code = coded(layout.type, m.row<float>(r)[c]);
      std::memcpy(&block[layout.at(r, c)], &code, size);
    }
  }
  return block;
}

}  // namespace

std::optional<std::int32_t> abi_type(ElementType type) {
  for (const NamedType& t : kTypes) {
    if (t.type == type) return t.abi;
  }
  const ElementInfo& element = info(type);
  if (element.ggml_id < 0 || element.block_elements == 1) return std::nullopt;
  return ASSAY_GGML(element.ggml_id);
}

std::optional<ElementType> element_type_from_abi(std::int32_t type) {
  for (const NamedType& t : kTypes) {
    if (t.abi == type) return t.type;
  }
  if (type < ASSAY_GGML(0)) return std::nullopt;
  return element_type_from_ggml(static_cast<std::uint32_t>(type - ASSAY_GGML(0)));
}

// --- OperandBytes

OperandBytes::OperandBytes(DeviceMemory* device, const void* source, std::size_t size, bool writable)
    : device_(device), size_(size) {
  if (device_ == nullptr) {
    host_.emplace(source, size, writable);
    return;
  }
  where_ = device_->allocate(size + kTail);
  const std::vector<std::byte> nothing(kTail + (source == nullptr ? size : 0), kPattern);
  device_->upload(where_, source == nullptr ? nothing.data() : source, size);
  device_->upload(static_cast<std::byte*>(where_) + size, nothing.data(), kTail);
}

OperandBytes::OperandBytes(OperandBytes&& other) noexcept
    : device_(other.device_),
      host_(std::move(other.host_)),
      where_(std::exchange(other.where_, nullptr)),
      size_(other.size_) {}

OperandBytes::~OperandBytes() {
  if (where_ != nullptr) device_->release(where_);
}

void* OperandBytes::data() const {
  return host_ ? host_->data() : where_;
}

void OperandBytes::fetch(void* to) const {
  if (host_)
    std::memcpy(to, host_->data(), size_);
  else
    device_->download(to, where_, size_);
}

void OperandBytes::rewrite(const std::function<void(std::span<std::byte>)>& change) {
  if (host_) return host_->rewrite(change);
  std::vector<std::byte> bytes(size_);
  device_->download(bytes.data(), where_, size_);
  change(bytes);
  device_->upload(where_, bytes.data(), size_);
}

bool OperandBytes::intact() const {
  if (host_) return host_->intact();
  std::vector<std::byte> tail(kTail);
  device_->download(tail.data(), static_cast<const std::byte*>(where_) + size_, kTail);
  return std::all_of(tail.begin(), tail.end(), [](std::byte b) { return b == kPattern; });
}

const void* MarshalledWeights::marshal(DeviceMemory* device, const void* bytes, std::size_t size) {
  const Key key{device, bytes, size};
  auto it = operand_.find(key);
  if (it != operand_.end()) return it->second.data();
  it = operand_.emplace(key, OperandBytes(device, bytes, size, false)).first;
  if (reversed_) reverse(it->second);
  return it->second.data();
}

const void* MarshalledWeights::marshal_argument(const void* home, std::span<const std::byte> contents) {
  const Key key{nullptr, home, contents.size()};
  const auto it = arguments_.find(key);
  if (it == arguments_.end())
    return arguments_.emplace(key, OperandBytes(nullptr, contents.data(), contents.size(), false))
        .first->second.data();
  it->second.rewrite(
      [&](std::span<std::byte> there) { std::copy(contents.begin(), contents.end(), there.begin()); });
  return it->second.data();
}

void MarshalledWeights::reverse(OperandBytes& operand) {
  constexpr std::size_t kWord = 4;
  operand.rewrite([](std::span<std::byte> bytes) {
    for (std::size_t low = 0, high = bytes.size() / kWord; low + 1 < high; ++low) {
      --high;
      std::swap_ranges(&bytes[low * kWord], &bytes[low * kWord] + kWord, &bytes[high * kWord]);
    }
  });
}

void MarshalledWeights::marshal_others(bool others) {
  if (others) {
    retired_.push_back(std::exchange(operand_, {}));
    retired_.push_back(std::exchange(arguments_, {}));
  } else if (reversed_) {
    for (auto& [key, operand] : operand_) reverse(operand);
  }
  reversed_ = others;
}

void MarshalledWeights::clear() {
  operand_.clear();
  arguments_.clear();
  retired_.clear();
  reversed_ = false;
}

// --- MarshalledCall

assay_matrix MarshalledCall::matrix(const Matrix& m, bool input, bool output, std::int32_t type) {
  assay_matrix operand = {.data = nullptr,
                          .rows = m.rows(),
                          .columns = m.columns(),
                          .stride = m.stride(),
                          .type = type,
                          .reserved = 0};
  if (terms_.weights == nullptr || m.empty()) return operand;
  const BlockLayout layout(m, type);
  if (terms_.device == nullptr && input && !output) {
    const std::vector<std::byte> block = filled_block(layout, m, true);
    operand.data = const_cast<void*>(terms_.weights->marshal_argument(m.row<float>(0), block));
    operand.data = static_cast<std::byte*>(operand.data) + layout.at(0, 0);
    return operand;
  }
  if (type == ASSAY_F32 && terms_.device == nullptr) {
    operand.data = m.row<float>(0);
    return operand;
  }
  std::vector<std::byte> block = filled_block(layout, m, input);
  OperandBytes memory(terms_.device, block.data(), block.size(), true);
  operand.data = static_cast<std::byte*>(memory.data()) + layout.at(0, 0);
  staged_.push_back({m, input, output, type, std::move(block), std::move(memory)});
  return operand;
}

const assay_weight* MarshalledCall::weight(const WeightView& view) {
  if (!view) return nullptr;
  const auto type = abi_type(view.type), scale_type = abi_type(view.scale_type);
  const bool scaled = view.kind == FormKind::scaled;
  if (view.codes == nullptr || !type || !scale_type || (view.kind != FormKind::plain && !scaled)) {
    expressible_ = false;
    return nullptr;
  }
  assay_weight& w = weights_.emplace_back();
  w.size = sizeof w;
  w.form = scaled ? ASSAY_SCALED : ASSAY_PLAIN;
  w.type = *type;
  w.input_major = view.input_major ? 1 : 0;
  w.rows = view.rows;
  w.columns = view.columns;
  w.row_bytes = view.row_bytes;
  w.block_rows = view.block_rows;
  w.block_columns = view.block_columns;
  if (scaled) {
    w.scale_type = *scale_type;
    w.scale_columns = view.scale_columns;
    w.first_row = view.first_row;
  }
  if (terms_.weights == nullptr) return &w;
  w.codes = terms_.weights->marshal(terms_.device, view.codes, view.rows * view.row_bytes);
  if (scaled) w.scales = terms_.weights->marshal(terms_.device, view.scales, scale_bytes(view));
  return &w;
}

const assay_weight* const* MarshalledCall::weights(const std::vector<WeightView>& views) {
  if (views.empty()) return nullptr;
  std::vector<const assay_weight*>& list = weight_lists_.emplace_back();
  for (const WeightView& view : views) list.push_back(weight(view));
  return list.data();
}

assay_paged_kv MarshalledCall::cache_rows(const PagedKvView& rows, std::size_t keys) {
  assay_paged_kv operand = {};
  operand.base = input(rows.base);
  if (rows.pages == nullptr) return operand;
  operand.page_rows = rows.page_rows;
  operand.page_count = (keys + rows.page_rows - 1) / rows.page_rows;
  operand.pages = array(std::span(rows.pages, operand.page_count));
  return operand;
}

const assay_sequence* MarshalledCall::sequences(const std::vector<SequenceMetadata>& sequences) {
  std::vector<assay_sequence>& list = sequences_.emplace_back();
  for (const SequenceMetadata& s : sequences)
    list.push_back(
        {s.first, s.queries, s.keys, cache_rows(s.key_rows, s.keys), cache_rows(s.value_rows, s.keys)});
  return list.data();
}

const void* MarshalledCall::bytes(const void* source, std::size_t size) {
  if (terms_.weights == nullptr || size == 0) return nullptr;
  return arrays_.emplace_back(terms_.device, source, size, false).data();
}

void* MarshalledCall::result_bytes(void* home, std::size_t size) {
  if (terms_.weights == nullptr || size == 0) return nullptr;
  ResultBytes& result =
      results_.emplace_back(ResultBytes{home, size, OperandBytes(terms_.device, nullptr, size, true)});
  return result.operand.data();
}

void MarshalledCall::settle(const Staged& staged) {
  const BlockLayout layout(staged.home, staged.type);
  std::vector<std::byte> after(staged.before.size());
  staged.operand.fetch(after.data());
  const std::size_t size = element_size(staged.type);
  for (std::size_t i = 0; i < layout.elements(); ++i) {
    if (staged.output && layout.inside(i)) continue;
    if (std::memcmp(&after[i * size], &staged.before[i * size], size) == 0) continue;
    const std::string matrix = fmt::format("a {} × {} matrix", layout.rows, layout.columns);
    if (layout.inside(i)) throw RunFault("canaries", matrix + " that is an argument was changed");
    const std::string_view side = i < kGuardElements                                  ? "before"
                                  : i >= kGuardElements + layout.rows * layout.stride ? "behind"
                                                                                      : "between rows of";
    throw RunFault("canaries", fmt::format("memory {} {} was written", side, matrix));
  }
  for (std::size_t r = 0; staged.output && r < layout.rows; ++r) {
    for (std::size_t c = 0; c < layout.columns; ++c)
      staged.home.row<float>(r)[c] = decoded(staged.type, &after[layout.at(r, c)]);
  }
}

void MarshalledCall::settle() {
  if (terms_.device != nullptr) terms_.device->finish();
  for (const Staged& staged : staged_) settle(staged);
  for (const ResultBytes& result : results_) {
    if (!result.operand.intact()) throw RunFault("canaries", "memory beside a result was written");
    result.operand.fetch(result.home);
  }
}

}  // namespace assay
