#include "core/model/gguf_transforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/model/gguf_names.h"
#include "core/system/error.h"

namespace assay::gguf_transforms {
namespace {

std::vector<std::string> names_of(const GgufSource& source) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= source.stem.size();) {
    const std::size_t end = std::min(source.stem.find('|', begin), source.stem.size());
    names.push_back(gguf_name_of(source.stem.substr(begin, end - begin), source.layer, source.spec.bias));
    begin = end + 1;
  }
  return names;
}

const LogicalTensor& stored_of(const GgufSource& source) {
  return source.stored.tensors[source.place];
}

DerivedTensor rows_of(std::string name, const GgufSource& source, std::uint64_t first, std::uint64_t count) {
  DerivedTensor tensor{.name = std::move(name), .shape = {count, stored_of(source).columns}};
  tensor.pieces = {{source.place, first, count}};
  return tensor;
}

const AttentionGeometry& heads_of(const GgufSource& source) {
  return source.tree.attention.front();
}

// A part of a vector: it is a single row.
DerivedTensor values_of(std::string name, const GgufSource& source, std::uint64_t first, std::uint64_t count,
                        std::uint64_t step = 1) {
  DerivedTensor tensor{.name = std::move(name), .shape = {count}};
  DerivedTensor::Piece piece{source.place, 0, 1};
  piece.columns = count, piece.first_column = first, piece.column_step = step;
  tensor.pieces = {piece};
  return tensor;
}

std::vector<DerivedTensor> split_three(const GgufSource& source, HeadRows order) {
  const AttentionGeometry& g = heads_of(source);
  const std::uint64_t q = g.heads * g.qk_head_dim, k = g.kv_heads * g.qk_head_dim,
                      v = g.kv_heads * g.v_head_dim;
  const auto names = names_of(source);
  std::vector<DerivedTensor> made;
  std::uint64_t first = 0;
  for (const auto& [i, count] : {std::pair<std::size_t, std::uint64_t>{0, q}, {1, k}, {2, v}}) {
    made.push_back(source.spec.bias ? values_of(names[i], source, first, count)
                                    : rows_of(names[i], source, first, count));
    if (i < 2 && order != HeadRows::kept) made.back().order = order, made.back().head_rows = g.qk_head_dim;
    first += count;
  }
  return made;
}

std::vector<DerivedTensor> transposed_columns(const GgufSource& source, std::uint64_t first_of_second,
                                              std::uint64_t step) {
  const auto names = names_of(source);
  const auto& shape = source.spec.shape;
  const std::uint64_t experts = shape[0], in = shape[1], out = shape[2] / names.size();
  std::vector<DerivedTensor> made;
  for (std::size_t i = 0; i < names.size(); ++i) {
    DerivedTensor tensor{.name = names[i], .shape = {experts, out, in}};
    for (std::uint64_t expert = 0; expert < experts; ++expert) {
      DerivedTensor::Piece piece{source.place, expert * in, in, true};
      piece.columns = out, piece.first_column = i * first_of_second, piece.column_step = step;
      tensor.pieces.push_back(piece);
    }
    made.push_back(std::move(tensor));
  }
  return made;
}

// Another tensor of the checkpoint, by its name.
std::uint32_t sibling(const GgufSource& source, const std::string& name) {
  const auto& tensors = source.stored.tensors;
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const LogicalTensor& tensor) { return tensor.name == name; });
  if (found == tensors.end())
    throw Error::refused("is missing: a GGUF holds what is made of it and others").tensor(name);
  return static_cast<std::uint32_t>(found - tensors.begin());
}

}  // namespace

std::vector<DerivedTensor> queries_keys_values(const GgufSource& source) {
  const AttentionGeometry& g = heads_of(source);
  const std::uint64_t width = g.qk_head_dim, members = g.heads / g.kv_heads + 2;
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  if (source.spec.bias) {
    if (g.heads != g.kv_heads)
      throw Error::refused("a bias of grouped queries, which llama.cpp's converter leaves in their order")
          .tensor(stored_of(source).name);
    tensor.regrouped = {g.kv_heads, members, width};
    return {tensor};
  }
  tensor.pieces.clear();
  const auto add = [&](std::uint64_t group, std::uint64_t member, std::uint64_t count) {
    tensor.pieces.push_back({source.place, (group * members + member) * width, count * width});
  };
  for (std::uint64_t group = 0; group < g.kv_heads; ++group) add(group, 0, members - 2);
  for (std::uint64_t group = 0; group < g.kv_heads; ++group) add(group, members - 2, 1);
  for (std::uint64_t group = 0; group < g.kv_heads; ++group) add(group, members - 1, 1);
  return {tensor};
}

std::vector<DerivedTensor> split_qkv(const GgufSource& source) {
  return split_three(source, HeadRows::kept);
}
std::vector<DerivedTensor> split_qkv_paired(const GgufSource& source) {
  return split_three(source, HeadRows::pairs_from_halves);
}

std::vector<DerivedTensor> split_grouped_qkv_paired(const GgufSource& source) {
  const AttentionGeometry& g = heads_of(source);
  const std::uint64_t width = g.qk_head_dim, queries = g.heads / g.kv_heads, members = queries + 2;
  const auto names = names_of(source);
  std::vector<DerivedTensor> made;
  for (const auto& [i, first, count] : {std::tuple<std::size_t, std::uint64_t, std::uint64_t>{0, 0, queries},
                                        {1, queries, 1},
                                        {2, queries + 1, 1}}) {
    DerivedTensor tensor{.name = names[i], .shape = {g.kv_heads * count * width, stored_of(source).columns}};
    for (std::uint64_t group = 0; group < g.kv_heads; ++group)
      tensor.pieces.push_back({source.place, (group * members + first) * width, count * width});
    if (i < 2) tensor.order = HeadRows::pairs_from_halves, tensor.head_rows = width;
    made.push_back(std::move(tensor));
  }
  return made;
}

std::vector<DerivedTensor> as_convolution(const GgufSource& source) {
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  tensor.shape = {1, tensor.shape.front(), 1, tensor.shape.back()};
  return {tensor};
}

std::vector<DerivedTensor> refused(const GgufSource& source) {
  throw Error::refused("llama.cpp's converter has no way for it").tensor(stored_of(source).name);
}

std::vector<DerivedTensor> split_halves(const GgufSource& source) {
  const LogicalTensor& stored = stored_of(source);
  const auto names = names_of(source);
  const std::uint64_t half = stored.rows / 2, experts = stored.slices;
  std::vector<DerivedTensor> made;
  for (std::size_t i = 0; i < 2; ++i) {
    DerivedTensor tensor{.name = names[i], .shape = stored.shape};
    tensor.shape[tensor.shape.size() - 2] = half;
    for (std::uint64_t expert = 0; expert < experts; ++expert)
      tensor.pieces.push_back({source.place, expert * stored.rows + i * half, half});
    made.push_back(std::move(tensor));
  }
  return made;
}

std::vector<DerivedTensor> transposed_experts(const GgufSource& source) {
  return transposed_columns(source, 0, 1);
}
std::vector<DerivedTensor> transposed_halves(const GgufSource& source) {
  return transposed_columns(source, source.spec.shape[2] / 2, 1);
}
std::vector<DerivedTensor> transposed_alternating(const GgufSource& source) {
  return transposed_columns(source, 1, 2);
}

std::vector<DerivedTensor> alternating_bias(const GgufSource& source) {
  const auto names = names_of(source);
  const auto& shape = source.spec.shape;
  std::vector<DerivedTensor> made;
  for (std::size_t i = 0; i < 2; ++i) {
    DerivedTensor tensor{.name = names[i], .shape = {shape[0], shape[1] / 2}};
    DerivedTensor::Piece piece{source.place, 0, shape[0]};
    piece.columns = shape[1] / 2, piece.first_column = i, piece.column_step = 2;
    tensor.pieces = {piece};
    made.push_back(std::move(tensor));
  }
  return made;
}

std::vector<DerivedTensor> stacked_rows(const GgufSource& source) {
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  tensor.shape = {source.tree.experts, tensor.rows() / source.tree.experts, tensor.columns()};
  return {tensor};
}

std::vector<DerivedTensor> stacked_rows_transposed(const GgufSource& source) {
  const LogicalTensor& stored = stored_of(source);
  const std::uint64_t rows = stored.all_rows() / source.tree.experts;
  DerivedTensor tensor{.name = names_of(source).front(),
                       .shape = {source.tree.experts, stored.columns, rows}};
  for (std::uint64_t expert = 0; expert < source.tree.experts; ++expert)
    tensor.pieces.push_back({source.place, expert * rows, rows, true});
  return {tensor};
}

std::vector<DerivedTensor> of_attention_or_state(const GgufSource& source) {
  const std::size_t which = source.spec.role == Role::recurrent_gate ? 1 : 0;
  return {whole(names_of(source)[which], source.stored, source.place)};
}

std::vector<DerivedTensor> squeezed(const GgufSource& source) {
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  std::erase(tensor.shape, 1U);
  if (tensor.shape.empty()) tensor.shape = {1};
  const LogicalTensor& stored = stored_of(source);
  if (stored.columns != tensor.columns())
    throw Error::refused("its last dimension is 1, which a GGUF would not keep").tensor(stored.name);
  return {tensor};
}

std::vector<DerivedTensor> minus_exp(const GgufSource& source) {
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  tensor.times_exp = -1;
  return {tensor};
}

std::vector<DerivedTensor> minus_exp_of_heads(const GgufSource& source) {
  const std::uint64_t heads = source.tree.recurrent.front().heads;
  const LogicalTensor& stored = stored_of(source);
  if (stored.columns < heads)
    throw Error::refused(fmt::format("has {} values for {} heads", stored.columns, heads))
        .tensor(stored.name);
  DerivedTensor tensor = values_of(names_of(source).front(), source, 0, heads);
  tensor.times_exp = -1;
  return {tensor};
}

std::vector<DerivedTensor> times_its_norm(const GgufSource& source) {
  constexpr std::string_view kMatrix = "_proj.weight", kNorm = "_norm.weight";
  const LogicalTensor& matrix = stored_of(source);
  const std::string stem = matrix.name.substr(0, matrix.name.size() - kMatrix.size());
  DerivedTensor tensor{.name = names_of(source).front(), .shape = {matrix.columns}};
  tensor.pieces = {{source.place, 0, 1}};
  tensor.times = sibling(source, stem + std::string(kNorm));
  return {tensor};
}

std::vector<DerivedTensor> stacked_siblings(const GgufSource& source) {
  constexpr std::string_view kKind = ".weight";
  const LogicalTensor& last = stored_of(source);
  const std::string numbered = last.name.substr(0, last.name.size() - kKind.size());
  const std::size_t dot = numbered.rfind('.');
  const std::uint64_t count = std::stoull(numbered.substr(dot + 1)) + 1;
  DerivedTensor tensor{.name = names_of(source).front(), .shape = {count, last.rows, last.columns}};
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t place = sibling(source, fmt::format("{}.{}{}", numbered.substr(0, dot), i, kKind));
    tensor.pieces.push_back({place, 0, source.stored.tensors[place].rows});
  }
  return {tensor};
}

std::vector<DerivedTensor> padded_rows(const GgufSource& source) {
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  const std::uint64_t wanted = source.tree.vocabulary, rows = tensor.shape.front();
  tensor.zero_rows = wanted - std::min(wanted, rows);
  tensor.shape.front() = std::max(wanted, rows);
  return {tensor};
}

std::vector<DerivedTensor> centred(const GgufSource& source) {
  DerivedTensor tensor = whole(names_of(source).front(), source.stored, source.place);
  tensor.centred = true;
  return {tensor};
}

std::vector<DerivedTensor> as_column(const GgufSource& source) {
  const std::uint64_t heads = source.stored.tensors[source.place].columns;
  DerivedTensor tensor{.name = names_of(source).front(), .shape = {heads, 1}};
  tensor.pieces = {{source.place, 0, 1, true}};
  return {tensor};
}
std::vector<DerivedTensor> minus_exp_as_column(const GgufSource& source) {
  auto made = as_column(source);
  made.front().times_exp = -1;
  return made;
}
std::vector<DerivedTensor> exp_as_column(const GgufSource& source) {
  auto made = as_column(source);
  made.front().times_exp = 1;
  return made;
}

std::vector<DerivedTensor> rows_of_groups(const GgufSource& source) {
  std::uint64_t groups = 1;  // of in_proj's rows: gate and values, then keys and queries of every group
  for_each_spec(source.tree, [&](const TensorSpec& spec, const Occurrence&) {
    if (!spec.name.ends_with(".in_proj.weight")) return;
    for (const PartitionedPart& part : spec.parallel.members) {
      if (part.role == Role::k) groups = part.units;
    }
  });
  const std::uint64_t width = source.stored.tensors[source.place].columns / groups;
  DerivedTensor tensor{.name = names_of(source).front(), .shape = {groups, width}};
  for (std::uint64_t group = 0; group < groups; ++group) {
    DerivedTensor::Piece piece{source.place, 0, 1};
    piece.columns = width, piece.first_column = group * width;
    tensor.pieces.push_back(piece);
  }
  return {tensor};
}

}  // namespace assay::gguf_transforms
