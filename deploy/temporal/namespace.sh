#!/bin/sh
# Makes the namespace and its search attributes (TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE say where). Safe to run again.
set -eu
temporal operator namespace describe -n "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create -n "$TEMPORAL_NAMESPACE" --retention 720h

# A server knows a new namespace only after the next refresh of its cache, some ten seconds later.
tries=0
until known=$(temporal operator search-attribute list 2>&1); do
  tries=$((tries + 1))
  if [ "$tries" -ge 60 ]; then
    printf 'the namespace never came up: %s\n' "$known" >&2
    exit 1
  fi
  sleep 1
done

for name in MetalflowNode MetalflowDevice MetalflowState MetalflowPhase MetalflowRunKind MetalflowClass MetalflowSite MetalflowPower; do
  printf '%s\n' "$known" | grep -qw "$name" || temporal operator search-attribute create --name "$name" --type Keyword
done
