#include "convert/shard_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "convert/fp8_cast.h"
#include "convert/plausible.h"
#include "convert/scale_check.h"
#include "convert/scale_map.h"
#include "core/model/composed_tensor.h"
#include "core/model/stored_checks.h"
#include "core/model/stored_names.h"
#include "core/model/weight_encoder.h"
#include "core/numeric/ceil_div.h"
#include "core/numeric/codec_simd.h"
#include "core/system/error.h"
#include "core/system/scratch.h"

namespace assay {
namespace {

constexpr std::uint64_t kPieceElements = 1 << 17;
constexpr std::uint64_t kTile = 2048;  // what is made of so many on the way stays in the first-level cache
constexpr std::uint64_t kCopyPiece = 2 << 20;
constexpr std::uint64_t kCutPiece = 4 << 20;

const OutputTensor* find(const std::vector<const OutputTensor*>& outputs, OutputTensor::Source source) {
  for (const OutputTensor* output : outputs) {
    if (output->source == source) return output;
  }
  return nullptr;
}

}  // namespace

std::uint64_t rows_a_piece(const ConversionPlan& plan, const Work& work) {
  const LogicalTensor& tensor = plan.stored.tensors[work.tensor];
  const std::uint64_t block_rows =
      work.action == WorkAction::quantize ? plan.spec.encoder->rows_together() : 1;
  const std::uint64_t rows =
      std::max({std::uint64_t{1}, kPieceElements / std::max<std::uint64_t>(1, tensor.columns),
                rows_read_together(tensor)});
  return std::max(block_rows, rows / block_rows * block_rows);
}

ShardPieces::ShardPieces(const PipelineContext& context, const OutputShard& shard, ShardSink& sink)
    : context_(context),
      plan_(context.plan),
      shard_(shard),
      sink_(sink),
      derived_rows_(context.plan, context.options, context.source) {
  for (const OutputTensor& output : shard_.tensors) {
    if (output.source == OutputTensor::Source::gathered)
      queue_gathering(output);
    else if (output.source == OutputTensor::Source::derived)
      queue_derived(output);
    else if (output.source != OutputTensor::Source::stored)
      made_[output.from].push_back(&output);
  }
  if (sink_.whole())
    queue_copies();
  else
    queue_cut_copies();
  if (plan_.spec.kind != Spec::Kind::keep) queue_checks();
  for (const auto& [work, outputs] : made_) queue_work(work, outputs);
  put_in_order();
}

ShardPieces::Group& ShardPieces::group_at(std::uint64_t offset) {
  groups_.emplace_back().offset = offset;
  return groups_.back();
}

// What a weight has to wait for comes one weight earlier: it is done when its turn comes, and what it read is
// still at hand. Of weights that wait for the same, before the first.
void ShardPieces::put_in_order() {
  std::vector<Group*> order;
  for (Group& group : groups_) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(),
                   [](const Group* a, const Group* b) { return a->offset < b->offset; });
  const auto add_first = [&](Group& group) {
    if (group.needs != nullptr && group.needs->first == nullptr) {
      group.needs->first = &group;
      group.before = std::move(group.needs->passes);
    }
    group.unmet = group.before.size();
    for (auto& run : group.before) {
      run = [&group, run = std::move(run)] {
        run();
        --group.unmet;
      };
      pieces_.push_back({&run, nullptr});
    }
  };
  if (!order.empty()) add_first(*order.front());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i + 1 < order.size()) add_first(*order[i + 1]);
    const Group& first = order[i]->needs == nullptr ? *order[i] : *order[i]->needs->first;
    for (const auto& run : order[i]->pieces) pieces_.push_back({&run, &first.unmet});
  }
}

const std::function<void()>* ShardPieces::next() {
  if (next_ == pieces_.size()) return nullptr;
  const Piece& piece = pieces_[next_];
  if (piece.waits_for != nullptr && *piece.waits_for != 0) return nullptr;
  ++next_;
  return piece.run;
}

std::vector<WorkError> ShardPieces::errors() const {
  std::vector<WorkError> errors;
  for (const auto& [work, sums] : sums_) {
    WorkError& error = errors.emplace_back(WorkError{work, {}});
    for (const ErrorSums& piece : sums) error.sums.add(piece);
  }
  return errors;
}

// Neighbours in both files are copied as one run.
void ShardPieces::queue_copies() {
  std::uint64_t from = 0, to = 0, bytes = 0;
  std::uint32_t file = 0;
  const auto flush = [&] {
    if (bytes == 0) return;
    Group& group = group_at(to);
    for (std::uint64_t done = 0; done < bytes; done += kCopyPiece) {
      const std::uint64_t size = std::min(kCopyPiece, bytes - done);
      group.pieces.push_back([this, file, size, source = from + done, target = to + done] {
        sink_.copy(context_.source.file(file), source, target, size);
        context_.progress.add(size);
      });
    }
    bytes = 0;
  };
  for (const OutputTensor& output : shard_.tensors) {
    if (output.source != OutputTensor::Source::stored) continue;
    const CheckpointTensor& stored = plan_.checkpoint.tensors[output.from];
    const bool continues =
        bytes > 0 && stored.file == file && stored.offset == from + bytes && output.offset == to + bytes;
    if (!continues) {
      flush();
      file = stored.file;
      from = stored.offset;
      to = output.offset;
    }
    bytes += output.bytes;
  }
  flush();
}

// What is dealt out over ranks passes through memory, once for all of them.
void ShardPieces::queue_cut_copies() {
  for (const OutputTensor& output : shard_.tensors) {
    if (output.source != OutputTensor::Source::stored) continue;
    const CheckpointTensor& stored = plan_.checkpoint.tensors[output.from];
    Group& group = group_at(output.offset);
    for (std::uint64_t at = 0; at < output.bytes; at += kCutPiece) {
      const std::uint64_t size = std::min(kCutPiece, output.bytes - at);
      group.pieces.push_back([this, &stored, &output, at, size] {
        thread_local Scratch<std::byte> memory;
        const auto bytes = memory.take(size);
        context_.source.read(stored, at, bytes);
        sink_.write(output, at, bytes);
        context_.progress.add(size);
      });
    }
  }
}

// The floats that stay as they are beside what changes (norms, embeddings) are no more to be NaN than those.
void ShardPieces::queue_checks() {
  for (const OutputTensor& output : shard_.tensors) {
    if (output.source != OutputTensor::Source::stored) continue;
    const LogicalTensor& tensor = tensor_of(output.work);
    const bool is_checked = !tensor.quantized() && is_plain_float(tensor.form.codes) &&
                            tensor.form.codes != ElementType::F64 && !is_known_buffer(tensor.name);
    if (!is_checked) continue;
    const std::uint64_t step = rows_a_piece(plan_, plan_.works[output.work]);
    Group& group = group_at(output.offset);
    for (std::uint64_t first = 0; first < tensor.all_rows(); first += step) {
      const std::uint64_t rows = std::min(step, tensor.all_rows() - first);
      group.pieces.push_back(
          [this, &tensor, first, rows] { check_values(tensor, read(tensor, first, rows)); });
    }
  }
}

void ShardPieces::queue_gathering(const OutputTensor& output) {
  const TensorCut& cut = plan_.gathered[output.from];
  Group& group = group_at(output.offset);
  for (std::uint64_t at = 0; at < output.bytes; at += kCutPiece) {
    const std::uint64_t size = std::min(kCutPiece, output.bytes - at);
    group.pieces.push_back([this, &cut, &output, at, size] {
      thread_local Scratch<std::byte> memory;
      const auto bytes = memory.take(size);
      read_gathered(context_.source, cut, at, bytes);
      sink_.write(output, at, bytes);
      context_.progress.add(size);
    });
  }
}

// The scales that stand behind it are looked at first: what is wrong with one is the cause of what its values
// are.
void ShardPieces::queue_derived(const OutputTensor& output) {
  const DerivedOutput& derived = plan_.derived[output.from];
  Group& group = group_at(output.offset);
  for (const DerivedTensor::Piece& piece : derived.made.pieces) {
    if (!scales_checked_.insert(piece.source).second) continue;
    group.before.push_back(
        [this, &source = plan_.stored.tensors[piece.source]] { check_scales(context_.source, source); });
  }
  const std::uint64_t step = rows_a_piece(derived.made), rows = derived.made.rows();
  const std::uint64_t row_bytes = storage_bytes(derived.type, derived.made.columns()).value();
  std::vector<ErrorSums>& sums = sums_[output.from];
  sums.resize(ceil_div(rows, step));
  for (std::uint64_t first = 0; first < rows; first += step) {
    const std::uint64_t count = std::min(step, rows - first);
    group.pieces.push_back([=, this, &output, &derived, &sum = sums[first / step]] {
      thread_local Scratch<std::byte> memory;
      const auto stored = memory.take(count * row_bytes);
      sum = derived_rows_.make(derived, first, count, stored);
      sink_.write(output, first * row_bytes, stored.size(), memory);
      context_.progress.add(count * row_bytes);
    });
  }
}

void ShardPieces::queue_work(std::uint32_t work, const Outputs& outputs) {
  const LogicalTensor& tensor = tensor_of(work);
  const OutputTensor* scales = find(outputs, OutputTensor::Source::scales);
  group_at(outputs.front()->offset).pieces.push_back([this, &tensor] {
    check_scales(context_.source, tensor);
  });
  if (plan_.works[work].action == WorkAction::reblock) {
    group_at(scales->offset).pieces.push_back([this, &tensor, scales] { reblock_scales(tensor, *scales); });
    return;
  }
  const std::uint64_t step = rows_a_piece(plan_, plan_.works[work]);
  const std::uint64_t count = ceil_div(tensor.all_rows(), step);
  if (plan_.works[work].action == WorkAction::recode) return queue_recoding(tensor, outputs, step, count);
  std::vector<ErrorSums>& sums = sums_[work];
  sums.resize(count);
  if (plan_.works[work].action == WorkAction::cast) {
    const OutputTensor* values = find(outputs, OutputTensor::Source::values);
    Group& group = group_at(values->offset);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = i * step, rows = std::min(step, tensor.all_rows() - first);
      group.pieces.push_back([=, this, &tensor, &sums] { cast(tensor, first, rows, *values, sums[i]); });
    }
    return;
  }
  const auto largest = std::max_element(outputs.begin(), outputs.end(),
                                        [](const auto* a, const auto* b) { return a->bytes < b->bytes; });
  Group& group = group_at((*largest)->offset);
  if (plan_.spec.encoder->needs_whole_amax()) group.needs = &whole_amax_of(work);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = i * step, rows = std::min(step, tensor.all_rows() - first);
    group.pieces.push_back([=, this, &tensor, &outputs, &sums, needs = group.needs] {
      quantize(tensor, first, rows, outputs, needs == nullptr ? 0 : needs->amax.load(), sums[i]);
    });
  }
}

// Members that lie in other shards are read there and here: who waits for a shard would have to hold its own
// open.
ShardPieces::WholeAmax& ShardPieces::whole_amax_of(std::uint32_t work) {
  const std::vector<std::uint32_t> alone = {work};
  const auto& fused = plan_.works[work].fused;
  const std::vector<std::uint32_t>& members = fused ? plan_.fused[*fused] : alone;
  const auto [at, is_new] = whole_amax_.try_emplace(members.front());
  WholeAmax& whole = at->second;
  if (!is_new) return whole;
  for (const std::uint32_t member : members) {
    const LogicalTensor& tensor = tensor_of(member);
    const std::uint64_t step = rows_a_piece(plan_, plan_.works[member]);
    for (std::uint64_t first = 0; first < tensor.all_rows(); first += step) {
      const std::uint64_t rows = std::min(step, tensor.all_rows() - first);
      whole.passes.push_back(
          [this, &tensor, &whole, first, rows] { raise_amax(tensor, first, rows, whole.amax); });
    }
  }
  return whole;
}

void ShardPieces::queue_recoding(const LogicalTensor& tensor, const Outputs& outputs, std::uint64_t step,
                                 std::uint64_t count) {
  const OutputTensor *codes = find(outputs, OutputTensor::Source::codes),
                     *scales = find(outputs, OutputTensor::Source::scales);
  Group& group = group_at(codes->offset);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = i * step * tensor.columns;
    const std::uint64_t size = std::min(step * tensor.columns, tensor.elements() - first);
    group.pieces.push_back([=, this, &tensor] { recode(tensor, first, size, *codes); });
  }
  group_at(scales->offset).pieces.push_back([=, this, &tensor] { double_scales(tensor, *scales); });
}

// --- one piece ---------------------------------------------------------------------------------------------

// Valid until the same thread reads again.
std::span<const float> ShardPieces::read(const LogicalTensor& tensor, std::uint64_t first,
                                         std::uint64_t rows) const {
  thread_local Scratch<float> memory;
  const auto values = memory.take(rows * tensor.columns);
  StoredReader(context_.source, tensor).decode_rows(first, rows, values);
  return values;
}

float ShardPieces::check_values(const LogicalTensor& tensor, std::span<const float> values) const {
  float amax = 0;
  if (!values.empty() && !block_amax(values, 1, values.size(), 1, values.size(), std::span(&amax, 1))) {
    throw Error::refused("a NaN or infinite value").tensor(tensor.name).remedy("the source is damaged");
  }
  check_plausible(tensor, amax, context_.options);
  return amax;
}

void ShardPieces::cast(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows,
                       const OutputTensor& output, ErrorSums& sums) {
  thread_local Scratch<std::byte> code_memory;
  thread_local Scratch<float> tile_memory;
  const std::uint64_t element = info(output.type).block_bytes;
  const auto stored = code_memory.take(rows * tensor.columns * element);
  const auto finish = [&] {
    sink_.write(output, first * tensor.columns * element, stored.size(), code_memory);
    context_.progress.add(stored.size());
  };
  if (output.type == ElementType::BF16 &&
      cast_fp8_to_bf16(context_.source, tensor, first, rows, stored, sums))
    return finish();
  const auto before = read(tensor, first, rows);
  for (std::uint64_t at = 0; at < before.size(); at += kTile) {
    const auto tile = before.subspan(at, std::min(kTile, before.size() - at));
    const auto codes = stored.subspan(at * element, tile.size() * element);
    check_values(tensor, tile);
    if (output.type == ElementType::BF16) {
      sums.add(bf16_with_errors(tile.data(), tile.size(), reinterpret_cast<std::uint16_t*>(codes.data())),
               tile.size());
      continue;
    }
    const auto after = tile_memory.take(tile.size());
    simd::encode(output.type, tile, Overflow::special, codes.data());
    simd::decode(output.type, codes, after.data());
    sums.add(tile, after);
  }
  if (!(sums.largest_error <= std::numeric_limits<float>::max()))  // an infinity, of finite values
    throw Error::refused(fmt::format("a value is too large for {}", name(output.type))).tensor(tensor.name);
  finish();
}

void ShardPieces::raise_amax(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows,
                             std::atomic<float>& amax) {
  const float mine = check_values(tensor, read(tensor, first, rows));
  for (float seen = amax.load(); seen < mine && !amax.compare_exchange_weak(seen, mine);) {
  }
}

void ShardPieces::quantize(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t rows,
                           const Outputs& outputs, float whole_amax, ErrorSums& sums) {
  thread_local EncodedRows made;
  const auto before = read(tensor, first, rows);
  const float amax = check_values(tensor, before);
  plan_.spec.encoder->encode({tensor, first, rows, before, whole_amax, context_.given}, made);
  for (const OutputTensor* output : outputs) {
    const auto [bytes, at] = made.part(output->part);
    if (!bytes.empty()) sink_.write(*output, at, bytes.size(), made.memory(output->part));
    context_.progress.add(bytes.size());
  }
  if (!(made.error.largest_error <= std::numeric_limits<float>::max()))
    throw Error::refused(fmt::format("values as large as {:g} decode to infinity as {}", amax,
                                     plan_.spec.encoder->form(tensor)))
        .tensor(tensor.name)
        .remedy("leave it out with --exclude");
  sums = made.error;
}

// The exponent's bias is one more in fnuz, so that twice the scale makes up for it. Its NaN is the code of
// -0; the codes of NaN and infinity would be numbers.
void ShardPieces::recode(const LogicalTensor& tensor, std::uint64_t first, std::uint64_t size,
                         const OutputTensor& output) {
  std::vector<std::byte> codes(size);
  context_.source.read(plan_.checkpoint.tensors[tensor.codes], first, codes);
  const auto largest = static_cast<std::uint8_t>(float_format(tensor.form.codes)->max_code());
  std::uint32_t special = 0;
  for (std::byte& code : codes) {
    special += (std::to_integer<std::uint8_t>(code) & 0x7F) > largest ? 1 : 0;
    code = code == std::byte{0x80} ? std::byte{0} : code;
  }
  if (special > 0)
    throw Error::refused("a NaN or infinite value").tensor(tensor.name).remedy("the source is damaged");
  sink_.write(output, first, codes);
  context_.progress.add(size);
}

void ShardPieces::double_scales(const LogicalTensor& tensor, const OutputTensor& output) {
  const std::uint64_t rows = tensor.slices * tensor.scale_rows();
  std::vector<float> scales(rows * tensor.scale_columns());
  StoredReader(context_.source, tensor).decode_scales(0, rows, scales);
  for (float& scale : scales) {
    scale *= 2;
    if (!(scale >= 0) || std::isinf(scale))
      throw Error::refused("a scale is NaN, infinite, negative or too large to double").tensor(tensor.name);
  }
  sink_.write(output, 0, std::as_bytes(std::span(scales)));
  context_.progress.add(output.bytes);
}

void ShardPieces::reblock_scales(const LogicalTensor& tensor, const OutputTensor& output) {
  const CheckpointTensor& stored = plan_.checkpoint.tensors[*tensor.scale];
  const ScaleMap rows{tensor.rows, tensor.form.block_rows, plan_.spec.block_rows};
  const ScaleMap columns{tensor.columns, tensor.form.block_columns, plan_.spec.block_columns};
  const std::uint64_t size = info(stored.type).block_bytes;
  std::vector<std::byte> old(stored.bytes);
  context_.source.read(stored, 0, old);
  std::vector<float> values(old.size() / size);
  simd::decode(tensor.form.scales, old, values.data());
  for (const float scale : values) {
    if (!(scale >= 0) || std::isinf(scale))
      throw Error::refused("a scale is NaN, infinite or negative").tensor(stored.name);
  }
  std::vector<std::byte> row(columns.new_count() * size);
  std::uint64_t target = 0;
  for (std::uint64_t slice = 0; slice < tensor.slices; ++slice) {
    for (std::uint64_t i = 0; i < rows.new_count(); ++i, target += row.size()) {
      const std::uint64_t from = (slice * rows.old_count() + rows.first(i)) * columns.old_count();
      for (std::uint64_t j = 0; j < columns.new_count(); ++j)
        std::memcpy(&row[j * size], &old[(from + columns.first(j)) * size], size);
      sink_.write(output, target, row);
    }
  }
  context_.progress.add(output.bytes);
}

}  // namespace assay
