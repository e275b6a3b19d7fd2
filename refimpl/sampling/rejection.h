// Speculation by rejection (Leviathan et al. 2023, Chen et al. 2023): drafts x ~ q are kept so that what comes out has the
// target's law p exactly. x is kept with probability min(1, p(x)/q(x)); else the token is drawn from max(p - q, 0),
// normalized. Both are the laws really drawn from: after temperature, top-k, penalties and all.
// A law of which a guess is known to be the only token (prompt lookup) is 1 there; several guesses at one position are tried
// in turn, each against what the one before it left (speculation/acceptance.h).
#pragma once

#include <span>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay {

double acceptance(std::span<const double> p, std::span<const double> q, TokenId drafted);
// A new vector: p is needed whole where the next position begins anew. Where p = q: p.
std::vector<double> residual_law(std::span<const double> p, std::span<const double> q);

}  // namespace assay
