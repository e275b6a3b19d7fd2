// What kind of fault makes a tap differ: every simple change of REF that could explain TEST is tried, and the
// one that leaves the least is named, if it leaves hardly anything.
#pragma once

#include <optional>
#include <string>

#include "kernels/dumps/dump.h"

namespace assay::dumps {

struct Diagnosis {
  std::string code;    // stable, for scripts: "scaled", "rope_pairs" …
  std::string detail;  // one sentence, no full stop
  std::string remedy;  // may be empty
  double left = 0;     // |TEST - explanation| / |TEST|; 0 of what needs none
};

// Why a tap proves nothing: it is all zeros, one number, or not a number. nullopt: it does not.
std::optional<Diagnosis> vacuous(const Activations& of, std::string_view whose);

// Of two tensors of one shape that differ by `error` (Frobenius, relative), `allowed` of it being noise.
std::optional<Diagnosis> diagnose(const Activations& ref, const Activations& test, double error,
                                  double allowed);

// Of two tensors whose widths or token counts differ.
std::optional<Diagnosis> diagnose_shapes(const Activations& ref, const Activations& test, double allowed);

// How much a hypothesis must leave at most to be believed.
double believable(double error, double allowed);

}  // namespace assay::dumps
