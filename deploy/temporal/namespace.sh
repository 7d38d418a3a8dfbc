#!/bin/sh
# Makes the namespace and its search attributes (TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE say where). Safe to run again.
set -eu
temporal operator namespace describe -n "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create -n "$TEMPORAL_NAMESPACE" --retention 720h

known=$(temporal operator search-attribute list)
for name in MetalflowNode MetalflowDevice MetalflowState MetalflowPhase MetalflowRunKind MetalflowClass MetalflowSite MetalflowPower; do
  printf '%s\n' "$known" | grep -qw "$name" || temporal operator search-attribute create --name "$name" --type Keyword
done
