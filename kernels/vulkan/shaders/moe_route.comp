// Selects the experts of each token and their weights, one token for each workgroup.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "math.glsl"

const uint kSoftmax = 0, kSigmoid = 1, kSelectedSoftmax = 2;  // values of reference::MoeScoring

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint scoring = kSoftmax;
layout(constant_id = 2) const bool has_bias = false;
layout(constant_id = 3) const bool normalize = false;
layout(set = 0, binding = 0) readonly buffer Logits { float logits[]; };
layout(set = 0, binding = 1) readonly buffer Bias { float bias[]; };
layout(set = 0, binding = 2) writeonly buffer Ids { uint ids[]; };
layout(set = 0, binding = 3) buffer Weights { float weights[]; };
layout(push_constant) uniform Push {
  uint experts, tokens, used;
  uint logits_offset, logits_token;
  uint bias_offset;
  uint ids_offset, ids_token;
  uint weights_offset, weights_token;
  float scale;
};

#include "select.glsl"
#include "sum32.glsl"

uint logits_at;
float largest, inverse_sum;
shared float maxima[gl_WorkGroupSize.x];

float SumTerm(uint which, uint id) {
  precise float below = logits[logits_at + id] - largest;
  return Exp(below);
}

float ExpertScore(uint id) {
  if (scoring == kSigmoid) return Sigmoid(logits[logits_at + id]);
  if (scoring == kSelectedSoftmax) return logits[logits_at + id];
  precise float share = SumTerm(0u, id) * inverse_sum;
  return Canon(share);
}

float Score(uint id) {
  const float score = ExpertScore(id);
  if (!has_bias) return score;
  precise float raised = score + bias[bias_offset + id];
  return Canon(raised);
}

// Returns the largest logit of all experts, to every invocation.
float Largest() {
  const uint lane = gl_LocalInvocationID.x;
  float own = logits[logits_at];
  for (uint id = lane; id < experts; id += gl_WorkGroupSize.x) own = max(own, logits[logits_at + id]);
  maxima[lane] = own;
  barrier();
  for (uint width = gl_WorkGroupSize.x / 2u; width > 0u; width /= 2u) {
    if (lane < width) maxima[lane] = max(maxima[lane], maxima[lane + width]);
    barrier();
  }
  const float result = maxima[0];
  barrier();
  return result;
}

// Divides the weights by their sum. Few experts are selected, so the sum is added up one by one, in
// the order of selection.
void DivideBySum(uint at) {
  precise float sum = weights[at];
  for (uint slot = 1u; slot < used; ++slot) sum = sum + weights[at + slot];
  const float inverse = Recip(sum);
  for (uint slot = 0u; slot < used; ++slot) {
    precise float share = weights[at + slot] * inverse;
    weights[at + slot] = Canon(share);
  }
}

void SoftmaxOfSelected(uint at) {
  float best = weights[at];
  for (uint slot = 1u; slot < used; ++slot) best = max(best, weights[at + slot]);
  for (uint slot = 0u; slot < used; ++slot) {
    precise float below = weights[at + slot] - best;
    weights[at + slot] = Exp(below);
  }
  DivideBySum(at);
}

void FinishWeights(uint at) {
  if (scoring == kSelectedSoftmax) SoftmaxOfSelected(at);
  if (normalize) DivideBySum(at);
  if (scale == 1.0) return;
  for (uint slot = 0u; slot < used; ++slot) {
    precise float scaled = weights[at + slot] * scale;
    weights[at + slot] = Canon(scaled);
  }
}

void main() {
  for (uint token = gl_WorkGroupID.x; token < tokens; token += gl_NumWorkGroups.x) {
    logits_at = logits_offset + token * logits_token;
    if (scoring == kSoftmax) {
      largest = Largest();
      inverse_sum = Recip(Sum32(0u, experts));
    }
    const uint weights_at = weights_offset + token * weights_token;
    Ranked ranked = Ranked(0.0, kNone);
    for (uint slot = 0u; slot < used; ++slot) {
      ranked = NextRanked(experts, ranked);
      if (gl_LocalInvocationID.x != 0u) continue;
      ids[ids_offset + token * ids_token + slot] = ranked.id;
      weights[weights_at + slot] = ExpertScore(ranked.id);
    }
    if (gl_LocalInvocationID.x == 0u) FinishWeights(weights_at);
  }
}
