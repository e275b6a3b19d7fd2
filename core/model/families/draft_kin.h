// What draft models of several kinds share.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

// Sizes that a draft's config must say; its head is the target's.
blocks::Decoder read_draft(ConfigReader& config, ModuleTree& tree);

// What enters, beside what may be stored of the target.
Module draft_entrance(const blocks::Decoder& d, const Quantity& in, bool bias);

// Two narrow tables score a token by the one before it, alone, behind a gate that hidden states open, or behind a state that goes
// along the block; a head tells how sure the draft is.
Module scores_of_next(ConfigReader& rules, const blocks::Decoder& d, const Quantity& draft,
                      const Quantity& rank);
Module draft_sureness(const Quantity& width);

}  // namespace assay::families
