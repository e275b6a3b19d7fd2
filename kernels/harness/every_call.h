// Do(EmbeddingCall); Do(LinearCall); … for the Call of every operation, where a template is made for each.
#pragma once

#define ASSAY_FOR_EVERY_CALL(Do) \
  Do(EmbeddingCall);             \
  Do(LinearCall);                \
  Do(RmsNormCall);               \
  Do(LayerNormCall);             \
  Do(RotaryCall);                \
  Do(AttentionCall);             \
  Do(MlaCall);                   \
  Do(ActivationCall);            \
  Do(GatedActivationCall);       \
  Do(SoftmaxCall);               \
  Do(MoeGateCall);               \
  Do(FusedMoeCall);              \
  Do(QuantizeCall);              \
  Do(DequantizeCall)
