// How rows of a checkpoint become those of a GGUF, where several families share the way: GgufOwnName::make.
#pragma once

#include <vector>

#include "core/model/gguf_rules.h"

namespace assay::gguf_transforms {

// Of q, k and v in one matrix, where each key head's queries, key and value lie together: all queries, all keys, all
// values (Falcon, BLOOM, GPT-NeoX). The bias likewise.
std::vector<DerivedTensor> queries_keys_values(const GgufSource& source);
// Of q, k and v one after the other: three matrices, as the three names of the entry say.
std::vector<DerivedTensor> split_qkv(const GgufSource& source);
// The same, q and k in pairs of rows (HeadRows).
std::vector<DerivedTensor> split_qkv_paired(const GgufSource& source);
// Of q, k and v of each key head together (InternLM2): three matrices, q and k in pairs of rows.
std::vector<DerivedTensor> split_grouped_qkv_paired(const GgufSource& source);
// [channels, 1, width] or [channels, width] as [1, channels, 1, width].
std::vector<DerivedTensor> as_convolution(const GgufSource& source);
// What llama.cpp's converter has no way for, so that its file would lack it or be another model.
std::vector<DerivedTensor> refused(const GgufSource& source);
// Of gate and up of every expert, or of one matrix: the first half of the rows, then the second, under two names.
std::vector<DerivedTensor> split_halves(const GgufSource& source);
// [experts, in, out] as [experts, out, in]; of gate and up side by side, or alternating, in the columns.
std::vector<DerivedTensor> transposed_experts(const GgufSource& source);
std::vector<DerivedTensor> transposed_halves(const GgufSource& source);
std::vector<DerivedTensor> transposed_alternating(const GgufSource& source);
std::vector<DerivedTensor> alternating_bias(const GgufSource& source);
// Of a matrix that holds the rows of all experts: a stack of theirs; the transposed of each.
std::vector<DerivedTensor> stacked_rows(const GgufSource& source);
std::vector<DerivedTensor> stacked_rows_transposed(const GgufSource& source);
// One of two names: the first where its layer attends, the second where it keeps a state.
std::vector<DerivedTensor> of_attention_or_state(const GgufSource& source);
// Without dimensions of 1: a convolution's [channels, 1, width].
std::vector<DerivedTensor> squeezed(const GgufSource& source);
// Of Mamba-2: a vector with a value a head, [heads], as [heads, 1]; and the norm of what comes out of the scan as a
// row for each group, which the rows of in_proj tell.
std::vector<DerivedTensor> as_column(const GgufSource& source);
std::vector<DerivedTensor> minus_exp_as_column(const GgufSource& source);
std::vector<DerivedTensor> rows_of_groups(const GgufSource& source);
std::vector<DerivedTensor> exp_as_column(const GgufSource& source);
// Less the mean of its values.
std::vector<DerivedTensor> centred(const GgufSource& source);
// -exp(value); of the first values, one a head, where more are stored (Kimi K3).
std::vector<DerivedTensor> minus_exp(const GgufSource& source);
std::vector<DerivedTensor> minus_exp_of_heads(const GgufSource& source);
// Of matrices with numbers for names, the last one: the stack of all.
std::vector<DerivedTensor> stacked_siblings(const GgufSource& source);
// Rows of zeros behind it, up to the vocabulary.
std::vector<DerivedTensor> padded_rows(const GgufSource& source);
// Of a matrix of one row and the norm before it, x_proj and x_norm: their product.
std::vector<DerivedTensor> times_its_norm(const GgufSource& source);

}  // namespace assay::gguf_transforms
