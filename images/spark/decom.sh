#!/bin/bash
# Run by the kubelet before it stops an executor (preStop): SIGPWR starts the executor's decommissioning. The script then
# waits until the executor has moved its blocks and ended; the pod's grace period is the limit.
set -euo pipefail

executor() {
  local folder
  for folder in /proc/[0-9]*; do
    if [[ $(cat "$folder/comm" 2>/dev/null) == java ]]; then
      echo "${folder#/proc/}"
      return
    fi
  done
}

pid=$(executor)
[[ -n $pid ]] || exit 0
echo "decom.sh: decommissioning process $pid" >/proc/1/fd/1 2>/dev/null || true
kill -PWR "$pid"
while kill -0 "$pid" 2>/dev/null; do
  sleep 1
done
