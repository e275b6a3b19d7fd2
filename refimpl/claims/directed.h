// Workloads small enough to follow by hand, in each of which a planted fault shows by construction: what has to happen for
// it, happens, and each request's text is far from what the fault would make of it. Without a fault nothing is wrong.
//
//   const DirectedCase test = repeated({model, ops});
//   const ServingWorkload workload(model, ops, test.requests);
//   run_schedule(workload, test.schedule).wrong    // empty
#pragma once

#include <vector>

#include "refimpl/claims/schedule.h"

namespace assay {

struct CaseModel {
  const LanguageModel& model;
  Ops& ops;
  std::uint64_t seed = 0;  // of the requests' tokens
};
// Of no text more than 32 tokens, so that rotary frequencies are those of short texts.
struct DirectedCase {
  std::vector<ServingRequest> requests;
  Schedule schedule;
};
using MakeCase = DirectedCase (*)(const CaseModel&);

// ---- keys of blocks and what lies in them

// 32 prompts that have no block in common: of their keys some have the same eight bits.
DirectedCase different_prompts(const CaseModel& of);
// Two that differ in two tokens, (t, u) and (t - 1, u + 31), so that sums of t · 31^k are the same. Of 64 tokens or more.
DirectedCase prompts_of_one_sum(const CaseModel& of);
// One whose second block is another's, behind a first block that is a third's.
DirectedCase blocks_behind_others(const CaseModel& of);
// A prompt whose blocks lie on disk, written with other weights.
DirectedCase blocks_of_other_weights(const CaseModel& of);
// A prompt that comes again under another salt; and so that it was evicted to disk in between.
DirectedCase repeated_under_a_salt(const CaseModel& of);
DirectedCase evicted_under_a_salt(const CaseModel& of);

// ---- prefixes that are known

// A prompt of whole blocks that comes again when the first is over.
DirectedCase repeated(const CaseModel& of);
// The same, with guesses of prediction layers where the model has them: all blocks but the last have to be hit.
DirectedCase repeated_and_counted(const CaseModel& of);
// A prompt that was read before, whose logits are wanted.
DirectedCase repeated_for_logits(const CaseModel& of);
// The same prompt twice in one step, in blocks of one token, or of more than a step reads.
DirectedCase twice_at_once(const CaseModel& of);
DirectedCase twice_amid_a_block(const CaseModel& of);
// More blocks are wanted at once than are free, and free ones are known.
DirectedCase more_than_is_free(const CaseModel& of);
// A prompt whose blocks two others have taken since.
DirectedCase recycled(const CaseModel& of);
// A prompt whose last block another has taken since: those before it have to be hit.
DirectedCase evicted_in_part(const CaseModel& of);
// A text longer than the model's shortest window, in blocks of one token.
DirectedCase beyond_the_window(const CaseModel& of);

// ---- scheduling

// Two texts that grow until the later one gives up its blocks; three, so that others take all of these.
DirectedCase two_that_crowd(const CaseModel& of);
DirectedCase three_that_crowd(const CaseModel& of);
// The same two with a bias for a token that may be said once.
DirectedCase two_that_crowd_penalized(const CaseModel& of);
// A prompt longer than the cache, and a short one behind it.
DirectedCase one_that_never_fits(const CaseModel& of);

// ---- sampling, logits of prompts, guesses

// Two texts drawn with seeds 0 and 5.
DirectedCase two_that_are_drawn(const CaseModel& of);
// Three drawn texts of one prompt, which ends amid a block.
DirectedCase forked_amid_a_block(const CaseModel& of);
// Logits of a prompt that is read in chunks; and beside a text with guesses.
DirectedCase prompt_logits_in_chunks(const CaseModel& of);
DirectedCase prompt_logits_beside_guesses(const CaseModel& of);
// Guesses that are all wrong; all right, and the text stops amid a step; all right, beside wrong ones in a tree.
DirectedCase wrong_guesses(const CaseModel& of);
DirectedCase stop_amid_a_step(const CaseModel& of);
DirectedCase tree_of_right_guesses(const CaseModel& of);

}  // namespace assay
